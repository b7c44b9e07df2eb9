"""Amazon MSK: the tokens by which librdkafka logs in with credentials of AWS."""

from dataclasses import dataclass

from warren.config.security import Iam


@dataclass(frozen=True)
class MskTokens:
    """Makes a token when librdkafka needs one: the signed URL of a request to the brokers."""

    iam: Iam

    def __call__(self, _: str) -> tuple[str, float]:
        """A token, and when it expires in seconds since 1970."""
        # Imported late: the package comes with an extra of Warren's.
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as Signer

        if self.iam.role_arn:
            token, expires_ms = Signer.generate_auth_token_from_role_arn(self.iam.region, self.iam.role_arn)
        elif self.iam.profile:
            token, expires_ms = Signer.generate_auth_token_from_profile(self.iam.region, self.iam.profile)
        else:
            token, expires_ms = Signer.generate_auth_token(self.iam.region)
        return token, expires_ms / 1000
