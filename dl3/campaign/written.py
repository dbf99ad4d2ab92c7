"""The schema of a campaign file. Unknown keys are rejected; a single value is accepted in place of a list."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from dl3.campaign.budget_text import seconds_of
from dl3.model.campaign import DutSpec, Need, TestName, Text
from dl3.model.stream import CAPTURE, MIXES


class Written(BaseModel):
    """A map in the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def as_list(value: object) -> object:
    """Convert a single value to a list."""
    return value if value is None or isinstance(value, list) else [value]


def as_text(value: object) -> object:
    """Use a single sentence for both languages."""
    return {"en": value, "zh": value} if isinstance(value, str) else value


def as_dut(value: object) -> object:
    """A string is both name and kind; without a kind, the name is used."""
    if isinstance(value, str):
        return {"name": value, "kind": value}
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return {"kind": value["name"], **value}
    return value


A_WORD = r"^[^|\x00-\x1f\x7f]{1,80}$"  # '|' separates the parts of a job key
A_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,40}$"
A_FRAME = rf"^([0-9]{{2,5}}|{'|'.join((*MIXES, CAPTURE))})$"
Word = Annotated[str, StringConstraints(pattern=A_WORD)]
Name = Annotated[str, StringConstraints(pattern=A_NAME)]
Frame = Annotated[str, StringConstraints(pattern=A_FRAME)]
Share = Annotated[float, Field(gt=0, le=1)]
Ratio = Annotated[float, Field(ge=0, le=0.5)]
Rate = Annotated[float, Field(ge=1, le=1e9)]
Exceed = Annotated[float, Field(ge=0, le=0.9)]


class WrittenText(Written):
    """Text shown to the user, in both languages."""

    en: str
    zh: str

    def text(self) -> Text:
        """Convert to the data type."""
        return Text(en=self.en, zh=self.zh)


def as_budget(text: str) -> str:
    """Check a budget and keep it as written."""
    try:
        seconds_of(text)
    except ValueError as error:
        raise PydanticCustomError("budget", "{wanted}", {"wanted": str(error)}) from error
    return text


Budget = Annotated[str, AfterValidator(as_budget)]
SomeText = Annotated[WrittenText, BeforeValidator(as_text)]
Texts = Annotated[tuple[SomeText, ...], BeforeValidator(as_list)]
Frames = Annotated[tuple[Frame, ...], BeforeValidator(as_list), Field(min_length=1)]
Tests = Annotated[tuple[TestName, ...], BeforeValidator(as_list), Field(min_length=1)]
Needs = Annotated[tuple[Need, ...], BeforeValidator(as_list)]
Words = Annotated[tuple[Word, ...], BeforeValidator(as_list), Field(min_length=1)]
Rates = Annotated[tuple[Rate, ...], BeforeValidator(as_list), Field(min_length=1, max_length=100)]
Values = Annotated[tuple[Word, ...], BeforeValidator(as_list), Field(min_length=1)]


class WrittenDut(Written):
    """A device under test; the options are validated by kind."""

    name: Name
    kind: Name
    options: dict[str, object] = Field(default_factory=dict)
    without: Annotated[tuple[Word, ...], BeforeValidator(as_list)] = ()  # parameters that the device does not support

    def spec(self) -> DutSpec:
        """Convert to the data type; numeric strings become numbers."""
        return DutSpec(name=self.name, kind=self.kind, options={k: typed(v) for k, v in self.options.items()})


SomeDut = Annotated[WrittenDut, BeforeValidator(as_dut)]


class WrittenEffort(Written):
    """How thorough the measurement is; None: not set here."""

    seconds: Annotated[float, Field(ge=0.1, le=86400)] | None = None
    repetitions: Annotated[int, Field(ge=1, le=100)] | None = None
    resolution: Annotated[float, Field(ge=0.0001, le=0.5)] | None = None
    method: Literal["binary", "mlrsearch"] | None = None
    goals: Annotated[tuple[Ratio, ...], BeforeValidator(as_list), Field(min_length=1)] | None = None
    exceed: Exceed | None = None
    loads: Annotated[tuple[Share, ...], BeforeValidator(as_list), Field(min_length=1)] | None = None
    rates: dict[Frame, Rates] | None = None  # frames/s of all streams, by frame size

    def said(self) -> Mapping[str, object]:
        """The values that are set here."""
        return {name: value for name, value in vars(self).items() if value is not None}


class Shared(Written):
    """Settings that can be given for all cases and overridden in one."""

    frames: Frames | None = None
    tests: Tests | None = None
    parameters: dict[Word, Values] = Field(default_factory=dict)
    effort: WrittenEffort = WrittenEffort()
    streams: tuple[dict[str, object], ...] | None = None


class WrittenCase(Shared):
    """One question."""

    key: Name
    title: SomeText
    duts: Words | None = None  # names; None: all
    needs: Needs = ()
    instead: dict[Word, dict[Word, Values]] = Field(default_factory=dict)  # by parameter and value that cannot be run
    published: Annotated[tuple[Word, ...], BeforeValidator(as_list)] = ()


class WrittenCampaign(Written):
    """The whole file."""

    name: Name
    title: SomeText
    duts: Annotated[tuple[SomeDut, ...], BeforeValidator(as_list), Field(min_length=1)]
    defaults: Shared = Shared()
    deviations: Texts = ()
    budget: Budget | None = None  # if the command line has none
    cases: Annotated[tuple[WrittenCase, ...], Field(min_length=1)]


def typed(value: object) -> object:
    """Convert strings to int, float or bool where possible, recursively in lists and maps."""
    if isinstance(value, list):
        return [typed(item) for item in value]
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if value in ("true", "false"):
        return value == "true"
    if not isinstance(value, str) or len(value) > 18 or not value.isascii():
        return value
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        return number if abs(number) < 1e18 else value  # neither infinite nor NaN
    return value
