"""Base class of the data types."""

from pydantic import BaseModel, ConfigDict


class Noun(BaseModel):
    """Immutable; no NaN or infinity."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)
