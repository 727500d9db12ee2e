"""What a client asks of an application: one workflow, its inputs, and for how long the client will wait.

Every field is declared here once; what it means in the documentation and in the OpenAPI document, and what an error
says was expected, comes from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from fairway.documents import A_NAME, Expected


class WorkflowRequest(BaseModel):
    """A request for a workflow."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    workflow: Annotated[str, Field(min_length=1), Expected(A_NAME)] = Field(
        description="The name of the workflow; where an application has one only, a client in Python may leave it out.",
        examples=["read-document"],
    )
    inputs: Annotated[Mapping[str, Any], Expected("the inputs of the workflow by name")] = Field(
        default={}, description="The inputs of the workflow by name; those with a default may be left out."
    )
    deadline_seconds: Annotated[float, Field(gt=0), Expected("seconds above 0 from now")] | None = Field(
        default=None,
        description="How long the client will wait, in seconds from now. A request that would take longer is refused "
        "at once, and nothing more is run of one that has become late.",
        examples=[0.5],
    )
    trace: Annotated[str, Expected("a W3C `traceparent`")] | None = Field(
        default=None,
        description="The W3C `traceparent` of the trace that the request belongs to; its stages are spans of it.",
        examples=["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
    )
