"""The MaintenanceWindow: when assets are closed, again and again or once, kept in Git like any manifest."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from assetlock.model import cel
from assetlock.model.base import AssetName, Duration, Model, PositiveDuration, Time
from assetlock.model.conditions import Conditions
from assetlock.model.meta import ObjectMeta
from assetlock.model.selector import LabelSelector
from assetlock.model.subject import Subject

_TIMES = (
    cel.rule(
        "has(self.schedule) != (has(self.start) || has(self.end))",
        "either schedule and duration, or start and end",
    ),
    cel.rule("has(self.schedule) == has(self.duration)", "schedule and duration go together"),
    cel.rule("has(self.start) == has(self.end)", "start and end go together"),
    cel.rule(
        "!has(self.start) || !has(self.end) || self.end > self.start",
        "must be later than start",
        field="end",
    ),
    cel.rule(
        "has(self.assetNames) && self.assetNames.size() > 0 || has(self.assetSelector)",
        "names no assets: write assetNames or assetSelector",
    ),
)


class MaintenanceWindowSpec(Model):
    """When, for which assets, and what happens to locks that are held."""

    model_config = ConfigDict(json_schema_extra=cel.rules(*_TIMES))

    schedule: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        description="When it starts, in cron's five fields as in a CronJob, such as 0 22 * * 6.",
        json_schema_extra=cel.rules(
            cel.rule("!self.contains('TZ=')", "names no time zone: that goes into timeZone"),
            cel.rule(
                r"self.matches('^\\s*(@[A-Za-z]+|\\S+(\\s+\\S+){4})\\s*$')",
                "a schedule has five fields: minute, hour, day of the month, month, day of the week; or is "
                "one of @hourly, @daily, @weekly, @monthly and @yearly",
            ),
        ),
    )
    duration: PositiveDuration | None = Field(
        None, description="How long it lasts each time, as elapsed time; at most 366 days."
    )
    time_zone: str = Field(
        "UTC",
        min_length=1,
        max_length=64,
        description="The zone of the schedule's clock, by its name in the time zone database, such as "
        "Europe/Berlin.",
    )
    start: Time | None = Field(None, description="When it starts, if it happens once.")
    end: Time | None = Field(None, description="When it ends, if it happens once.")
    kind: Literal["Block", "Allow"] = Field(
        "Block",
        description="Block (default): the assets are under maintenance inside the window. Allow: outside it. An "
        "asset "
        "is not under maintenance while no Block window is active and, if it has Allow windows, one of those is.",
    )
    asset_names: list[AssetName] = Field(
        default_factory=list, max_length=256, description="Assets in the same namespace, by name."
    )
    asset_selector: LabelSelector | None = Field(
        None, description="Assets in the same namespace, by their labels."
    )
    when_held: Literal["Wait", "Revoke", "Skip"] = Field(
        "Wait",
        description="What happens to an asset that is locked when maintenance begins. Wait (default): "
        "maintenance begins "
        "when that lock ends, and nobody else gets the asset before. Revoke: the lock ends at once. Skip: no "
        "maintenance this time.",
    )
    lead_time: Duration = Field(
        "0s",
        description="Within this time before the start, locks that would outlive the start are not granted; "
        "earlier ones "
        "are cut short. Default: 0s.",
    )
    maintainers: list[Subject] = Field(
        default_factory=list, max_length=32, description="Who may write during maintenance. Default: nobody."
    )
    suspend: bool = Field(
        False, description="Whether the window is ignored; an active one ends. Default: false."
    )
    reason: str | None = Field(None, max_length=1024, description="Why; whoever is refused sees it.")


class MaintenanceWindowStatus(Model):
    """The observed state."""

    active: bool | None = Field(None, description="Whether now is inside the window.")
    next_start: Time | None = Field(None, description="When it starts next.")
    next_end: Time | None = Field(None, description="When it ends next.")
    last_start: Time | None = Field(None, description="When it started last.")
    last_end: Time | None = Field(None, description="When it ended last.")
    conditions: Conditions = Field(
        default_factory=list,
        description="Ready: its times are valid and its assets exist. Enforced: the assets are as the window "
        "says; else "
        "which one is not, and why.",
    )
    observed_generation: int | None = Field(None, ge=0, description="The generation that this was made from.")


class MaintenanceWindow(Model):
    """When assets are under maintenance."""

    model_config = ConfigDict(
        json_schema_extra=cel.rules(
            cel.rule(
                "self.metadata.name.size() <= 63",
                "a window's name has at most 63 characters",
                field="metadata.name",
            )
        )
    )

    metadata: ObjectMeta
    spec: MaintenanceWindowSpec
    status: MaintenanceWindowStatus = Field(default_factory=MaintenanceWindowStatus)
