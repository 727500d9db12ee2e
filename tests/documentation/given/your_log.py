"""What the tutorial takes for granted: the accounting of a Slurm cluster."""

from pathlib import Path

Path("sacct.txt").write_text(
    "JobID|Submit|ElapsedRaw|AllocTRES|Account|State\n"
    "1|2026-03-01T09:00:00|3600|billing=8,cpu=8,gres/gpu=2,node=1|vision|COMPLETED\n"
    "2|2026-03-01T09:05:00|1800|billing=4,cpu=4,gres/gpu=1,node=1|speech|COMPLETED\n"
    "3|2026-03-01T09:06:00|60|billing=4,cpu=4,node=1|speech|COMPLETED\n"
    "4|2026-03-01T09:07:00|900|billing=4,cpu=4,gres/gpu=1,node=1|vision|COMPLETED\n"
)
