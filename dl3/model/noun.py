"""What all nouns have in common."""

from pydantic import BaseModel, ConfigDict


class Noun(BaseModel):
    """Never changed once made."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)
