"""The array logic of Warren: whole columns in, whole columns out, no I/O and no clock."""
