"""The DDP keywords that this evidence supports, and why."""

import json
from typing import Any

from ddplint.report import Setting
from ddplint.rules.words import count
from ddplint.views import RunView, ScenarioView, backward_left_out, backwards_again

BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "complex64": 8, "complex128": 16}


def settings(run: RunView) -> dict[str, Setting]:
    """Only keywords that the evidence speaks to."""
    seen = [s for s in run.scenarios if s.use.uses and not s.why_unknown("gradients") and "gradients" not in s.seen.partly
            and not backward_left_out(s)]
    if not seen:
        return {}
    advice = {
        "find_unused_parameters": _find_unused(run, seen),
        "static_graph": _static_graph(run, seen),
        "gradient_as_bucket_view": _bucket_view(seen),
        "broadcast_buffers": _buffers(seen),
        "sync_batchnorm": _sync_batchnorm(seen),
        "skip_all_reduce_unused_params": _skip_all_reduce(run, seen),
    }
    tried = run.evidence.tried
    for name, setting in advice.items():
        if setting is not None:
            setting.tried = _tried(name, setting.value, tried)
    return {name: setting for name, setting in advice.items() if setting is not None}


def _tried(name: str, value: Any, tried: dict[str, str]) -> str | None:
    """What DDP did with the value that fits; where that is the one it has, what the other one costs."""
    own, other = tried.get(f"{name}={json.dumps(value)}"), tried.get(f"{name}={json.dumps(not value)}")
    if own is None or other is None or "a step took" in own:
        return own
    return f"{own}; with {name}={json.dumps(not value)}: {other}"


def _draws(seen: list[ScenarioView]) -> str:
    return count(sum(len(scenario.use.uses) for scenario in seen), "step") + f" of {count(len(seen), 'scenario')} (all ranks)"


def _find_unused(run: RunView, seen: list[ScenarioView]) -> Setting:
    sometimes, never = run.now_and_then, run.never
    if sometimes:
        return Setting(True, f"{count(len(sometimes), 'parameter')} ({sometimes[0]}, ...) "
                       "get a gradient in some steps and none in others" if len(sometimes) > 1
                       else f"{sometimes[0]} gets a gradient in some steps and none in others")
    if never:
        return Setting(False, f"{count(len(never), 'parameter')} ({never[0]}{', ...' if len(never) > 1 else ''}) never "
                       f"{'get' if len(never) > 1 else 'gets'} a gradient: mend or freeze that; every other one does in every step")
    return Setting(False, f"every parameter got a gradient in all {_draws(seen)}")


def _static_graph(run: RunView, seen: list[ScenarioView]) -> Setting:
    sometimes = run.now_and_then
    if sometimes:
        return Setting(False, f"the set of parameters with a gradient varies ({sometimes[0]}{', ...' if len(sometimes) > 1 else ''})")
    ignored = next((output.name for s in seen for output in s.outputs if not output.in_total and output.stranded), None)
    if ignored:
        return Setting(False, f"output '{ignored}' is returned and ignored: static_graph fails at what hangs on it")
    if any(True for s in seen for _ in backwards_again(s)):
        return Setting(False, "backward() runs again after one forward: under static_graph the first one frees all that lies behind its outputs")
    reentrant = any(event.kind == "checkpoint" and event.detail == "reentrant" for s in seen for _, event in s.events("checkpoint"))
    if reentrant:
        return Setting(True, "reentrant checkpoints are used and the set of gradients never changes "
                       f"(use_reentrant=False needs no flag); {_draws(seen)}")
    return Setting(False, f"true would do, too: the set of gradients never changed in {_draws(seen)}; nothing here needs it")


def _bucket_view(seen: list[ScenarioView]) -> Setting | None:
    model = max((scenario.model for scenario in seen), key=lambda m: len(m.parameters))
    size = sum(p.numel * BYTES.get(p.dtype, 4) for p in model.parameters if p.trainable)
    if not size:
        return None
    told = f"{size / 2**20:,.1f} MiB" if size >= 2**20 else f"{size / 2**10:.1f} KiB"
    return Setting(True, f"saves a second copy of the gradients ({told}) and the copying")


def _buffers(seen: list[ScenarioView]) -> Setting | None:
    if any("inplace" in scenario.failed_as for scenario in seen):
        return Setting(False, "a buffer is overwritten between a forward and its backward")
    if not any(scenario.model.buffers for scenario in seen):
        return Setting(False, "the model has no buffers to broadcast before every forward")
    return None


def _sync_batchnorm(seen: list[ScenarioView]) -> Setting | None:
    fewest = [(n, module) for s in seen for rank in s.ranks for module, n in (rank.batchnorm or {}).items()]
    if not fewest:
        return None
    number, module = min(fewest)
    if number < 16:
        return Setting(True, f"{module} normalises over {count(number, 'value')} per channel on a rank")
    return Setting(False, f"every BatchNorm sees at least {number:,} values per channel on each rank")


def _skip_all_reduce(run: RunView, seen: list[ScenarioView]) -> Setting | None:
    keywords: Any = run.evidence.spec.get("ddp_keywords") or ()
    if "skip_all_reduce_unused_params" not in keywords:
        return None
    idle = [s for s in seen if s.finds_unused and _idle_everywhere(s)]
    if not idle:
        return None
    return Setting(True, f"in {idle[0].name} there are steps in which whole parameters have a gradient on no rank")


def _idle_everywhere(scenario: ScenarioView) -> bool:
    """Whether in some step some parameter gets no gradient on any rank."""
    for step in {step for _, step in scenario.use.uses}:
        missing = [set(scenario.use.missing_at(r, s)) for r, s in scenario.use.uses if s == step]
        if missing and set.intersection(*missing):
            return True
    return False
