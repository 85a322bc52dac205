"""What every section has in common, and the kinds of numbers that several of them hold."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

PositiveInt = Annotated[int, Field(ge=1, le=10**9)]
Beam = Annotated[int, Field(ge=1, le=1_000)]
Probability = Annotated[float, Field(ge=0.0, lt=1.0)]


class Section(BaseModel):
    """A group of keys: unknown keys are refused, values never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)
