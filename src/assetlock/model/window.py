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
    """When, for which assets, and what happens to those who are in the way."""

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
        description="Block: the assets are closed inside the window. Allow: they are closed outside it. "
        "An asset is open while no Block window and, if it has any, an Allow window is active.",
    )
    asset_names: list[AssetName] = Field(
        default_factory=list, max_length=256, description="Assets in the same namespace, by name."
    )
    asset_selector: LabelSelector | None = Field(
        None, description="Assets in the same namespace, by their labels."
    )
    when_held: Literal["Wait", "Revoke", "Skip"] = Field(
        "Wait",
        description="What happens to an asset that is locked when it is to be closed. Wait: it is closed when "
        "that lock ends, and nobody else gets it before. Revoke: the lock ends at once. Skip: not this time.",
    )
    lead_time: Duration = Field(
        "0s",
        description="No new lock outlives the moment of closing: its TTL is cut short; "
        "or refused, if it is asked for within this time before.",
    )
    maintainers: list[Subject] = Field(
        default_factory=list, max_length=32, description="Who may write while the assets are closed."
    )
    suspend: bool = Field(False, description="Whether it is ignored for now; one that is active ends.")
    reason: str | None = Field(None, max_length=1024, description="What it is for; who is refused is told.")


class MaintenanceWindowStatus(Model):
    """Where it stands."""

    active: bool | None = Field(None, description="Whether now is inside the window.")
    next_start: Time | None = Field(None, description="When it starts next.")
    next_end: Time | None = Field(None, description="When it ends next.")
    last_start: Time | None = Field(None, description="When it started last.")
    last_end: Time | None = Field(None, description="When it ended last.")
    conditions: Conditions = Field(
        default_factory=list,
        description="Ready: its times and assets are clear. Enforced: the assets are open and closed as it "
        "says, or else which is not, and why.",
    )
    observed_generation: int | None = Field(None, ge=0, description="The generation that this was made from.")


class MaintenanceWindow(Model):
    """When assets are closed for everybody's automation."""

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
