"""A rank of a launch: runs the jobs named in argv[1] (JSON: [[job, keywords], ...]) and, on rank 0, prints what came."""

import dataclasses
import json
import sys
from pathlib import Path

from ddplint.launch import is_reporter
from ddplint.record import join
from ddplint.spec import Run, Spec

folder = str(Path(__file__).parent)
sys.path.insert(0, folder)
spec = Spec(model={}, run=Run(device="cpu", timeout=2.0, world_size=7, engine="torchrun"), folder=folder)
with join.ranks(spec) as launch:
    for job, keywords in json.loads(sys.argv[1]):
        transcripts = [launch.solo(job, **keywords)] if ":alone" in job else launch.run(job, **keywords)
        if is_reporter():
            print(json.dumps([dataclasses.asdict(t) for t in transcripts]), flush=True)
sys.exit(1)
