"""The JSON of the API as types: the OpenAPI description and the dashboard's types are made from them."""
