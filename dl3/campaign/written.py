"""A campaign as a person writes it. Unknown keys are refused; a single value may stand where a list is wanted."""

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
    """One value is a list of one."""
    return value if value is None or isinstance(value, list) else [value]


def as_text(value: object) -> object:
    """One sentence stands for both languages."""
    return {"en": value, "zh": value} if isinstance(value, str) else value


def as_dut(value: object) -> object:
    """A word is name and kind; without a kind, the name is one."""
    if isinstance(value, str):
        return {"name": value, "kind": value}
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return {"kind": value["name"], **value}
    return value


A_WORD = r"^[^|\x00-\x1f\x7f]{1,80}$"  # '|' stands between a key's parts
A_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,40}$"
A_FRAME = rf"^([0-9]{{2,5}}|{'|'.join((*MIXES, CAPTURE))})$"
Word = Annotated[str, StringConstraints(pattern=A_WORD)]
Name = Annotated[str, StringConstraints(pattern=A_NAME)]
Frame = Annotated[str, StringConstraints(pattern=A_FRAME)]
Share = Annotated[float, Field(gt=0, le=1)]
Ratio = Annotated[float, Field(ge=0, le=0.5)]
Exceed = Annotated[float, Field(ge=0, le=0.9)]


class WrittenText(Written):
    """What people read, in both languages."""

    en: str
    zh: str

    def text(self) -> Text:
        """As the noun."""
        return Text(en=self.en, zh=self.zh)


def as_budget(text: str) -> str:
    """As it was written, when it is one."""
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
Values = Annotated[tuple[Word, ...], BeforeValidator(as_list), Field(min_length=1)]


class WrittenDut(Written):
    """A device under test; its kind judges the options."""

    name: Name
    kind: Name
    options: dict[str, object] = Field(default_factory=dict)
    without: Annotated[tuple[Word, ...], BeforeValidator(as_list)] = ()  # parameters that it cannot be given

    def spec(self) -> DutSpec:
        """As the noun; words that are numbers become numbers."""
        return DutSpec(name=self.name, kind=self.kind, options={k: typed(v) for k, v in self.options.items()})


SomeDut = Annotated[WrittenDut, BeforeValidator(as_dut)]


class WrittenEffort(Written):
    """How thoroughly; None: not said here."""

    seconds: Annotated[float, Field(ge=0.1, le=86400)] | None = None
    repetitions: Annotated[int, Field(ge=1, le=100)] | None = None
    resolution: Annotated[float, Field(ge=0.0001, le=0.5)] | None = None
    method: Literal["binary", "mlrsearch"] | None = None
    goals: Annotated[tuple[Ratio, ...], BeforeValidator(as_list), Field(min_length=1)] | None = None
    exceed: Exceed | None = None
    loads: Annotated[tuple[Share, ...], BeforeValidator(as_list), Field(min_length=1)] | None = None

    def said(self) -> Mapping[str, object]:
        """What is said here."""
        return {name: value for name, value in vars(self).items() if value is not None}


class Shared(Written):
    """What may stand for all cases, and again in one."""

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
    published: Annotated[tuple[Word, ...], BeforeValidator(as_list)] = ()


class WrittenCampaign(Written):
    """The whole file."""

    name: Name
    title: SomeText
    duts: Annotated[tuple[SomeDut, ...], BeforeValidator(as_list), Field(min_length=1)]
    defaults: Shared = Shared()
    deviations: Texts = ()
    budget: Budget | None = None  # where the command names none
    cases: Annotated[tuple[WrittenCase, ...], Field(min_length=1)]


def typed(value: object) -> object:
    """A word that is a whole number, a number, or true or false becomes one; lists and maps in the same way."""
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
        return number if abs(number) < 1e18 else value  # neither infinite nor no number
    return value
