"""What the page of simulations takes for granted: a trace in columns of somebody's own."""

from pathlib import Path

Path("ours.csv").write_text("submit_time,run_time,num_gpus,group\n0,60,1,vision\n30,60,2,speech\n")
