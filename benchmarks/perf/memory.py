"""Benchmark of the peak memory of a MAGRPO step over the number of agents.

A team samples and updates twice, so that the optimizer state exists. Each team runs in its own
process, whose peak resident memory is reported. With full weights every agent has a model,
gradients and two moments of AdamW; with adapters all agents share one frozen base. Full weights of
many agents exceed the memory of most machines: teams that are not measured are extrapolated from a
measured one with 16 bytes per weight for each additional agent. `--peer` adds two agents of
`comlrl`, which has full weights only. `--micro-batch-tokens` adds other sizes of micro-batches,
which trade time for memory; `update_seconds` of each team is stored with the results.

    python -m benchmarks.perf memory memory_8x256
    python -m benchmarks.perf.memory [--agents 2 4 8] [--full-agents 2] [--group-size 4] [--peer]
"""

import argparse
import sys
from collections.abc import Mapping, Sequence

from benchmarks.perf.arguments import parse_arguments
from benchmarks.perf.common import Worker, hardware, peers_python, print_figure
from benchmarks.perf.versus import model_folder, story_prompts
from benchmarks.perf.work import Work

__all__ = ["main"]

PEER = "comlrl 1.4.3, full weights"
BYTES_A_WEIGHT = 16  # float32 weight, gradient and two moments
MIB = 2**20


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the result as one JSON line."""
    arguments = _parse(argv)
    before = hardware()
    names = ("tasks", "group_size", "max_new_tokens", "precision")
    work = {name: getattr(arguments, name) for name in names}
    rank = arguments.lora_rank
    with model_folder(smoke=arguments.smoke) as model:
        ours = {**work, "model": model}
        full = {n: _measure({**ours, "agents": n, "lora_rank": 0}) for n in arguments.full_agents}
        shared = {n: _measure({**ours, "agents": n, "lora_rank": rank}) for n in arguments.agents}
        smaller = {
            f"{n} agents, one base with adapters, {tokens} tokens a micro-batch": _measure(
                {**ours, "agents": n, "lora_rank": rank, "micro_batch_tokens": tokens}
            )
            for n in arguments.agents
            for tokens in arguments.micro_batch_tokens
        }
        peer = _measure_peer(model, arguments) if arguments.peer else None
    teams = {f"{n} agents, full weights": measured for n, measured in full.items()}
    teams |= {f"{n} agents, one base with adapters": measured for n, measured in shared.items()}
    teams |= smaller
    print_figure(
        {
            "figure": "memory",
            "title": title(arguments),
            "work": {**work, "model": "SmolLM2-135M-Instruct", "lora_rank": rank, "rounds": 2},
            "rows": rows(full, shared) if peer is None else rows_beside(teams, peer),
            "measured": {**teams, PEER: peer},
            "versions": next(iter(shared.values()))["about"],
            "hardware": before,
        }
    )


def title(arguments: argparse.Namespace) -> str:
    """Return a description of the work for the table."""
    tasks = f"{arguments.tasks} task" + "s" * (arguments.tasks > 1)
    return (
        f"Memory of a MAGRPO step, SmolLM2-135M, {tasks}, G {arguments.group_size}, "
        f"{arguments.max_new_tokens} new tokens, {arguments.precision}, rank {arguments.lora_rank}"
    )


def rows(
    full: Mapping[int, Mapping[str, object]], shared: Mapping[int, Mapping[str, object]]
) -> list[dict[str, object]]:
    """Return the rows of the table: peak memory with adapters and with full weights.

    Args:
        full: Measurements with full weights by number of agents; numbers may be missing.
        shared: Measurements with adapters by number of agents.
    """
    table = []
    for agents, measured in shared.items():
        ours = float(str(measured["peak_rss_mib"]))
        row: dict[str, object] = {
            "what": f"peak memory, {agents} agents, one base with adapters",
            "unit": "MiB",
            "ours": ours,
        }
        if full:
            peer = full_peak(full, agents)
            name = "full weights" if agents in full else "full weights, reckoned"
            row |= {"peer": peer, "peer_name": name, "ratio": round(peer / ours, 2)}
        table.append(row)
    return table


def rows_beside(
    teams: Mapping[str, Mapping[str, object]], peer: Mapping[str, object]
) -> list[dict[str, object]]:
    """Return the rows that compare each team with two agents of the peer."""
    theirs = float(str(peer["peak_rss_mib"]))
    table: list[dict[str, object]] = []
    for name, measured in teams.items():
        ours = float(str(measured["peak_rss_mib"]))
        row = {"what": f"peak memory, {name}", "unit": "MiB", "ours": ours, "peer": theirs}
        table.append({**row, "peer_name": PEER, "ratio": round(theirs / ours, 2)})
    return table


def full_peak(full: Mapping[int, Mapping[str, object]], agents: int) -> float:
    """Return the peak of a team with full weights, extrapolated from the nearest measurement."""
    nearest = min(full, key=lambda number: abs(number - agents))
    weights = float(str(full[nearest]["weights_an_agent"]))
    more = (agents - nearest) * weights * BYTES_A_WEIGHT / MIB
    return round(float(str(full[nearest]["peak_rss_mib"])) + more, 1)


def _measure(setup: Mapping[str, object]) -> dict[str, object]:
    """Run two steps in a new process."""
    print(f"{setup['agents']} agents, rank {setup['lora_rank']}", file=sys.stderr, flush=True)
    with Worker(sys.executable, "benchmarks.perf.memory_step", setup) as worker:
        worker.round(0)
        return {**worker.round(1), "about": worker.about}


def _measure_peer(model: str, arguments: argparse.Namespace) -> dict[str, object]:
    """Run two steps of two agents of the peer."""
    print(PEER, file=sys.stderr, flush=True)
    work = Work(
        model,
        story_prompts(arguments.tasks),
        group_size=arguments.group_size,
        max_new_tokens=arguments.max_new_tokens,
    )
    setup = {**work.as_setup(), "dtype": "float32"}
    with Worker(peers_python(), "benchmarks.perf.magrpo_comlrl", setup) as worker:
        worker.round(0)
        return {**worker.round(1), "about": worker.about}


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    return parse_arguments(
        argv,
        "Peak memory of a MAGRPO step.",
        agents={
            "type": int,
            "nargs": "+",
            "default": [2, 4, 8],
            "help": "team sizes with adapters",
        },
        full_agents={
            "type": int,
            "nargs": "*",
            "default": [2],
            "help": "team sizes with full weights",
        },
        peer={"action": "store_true", "help": "also measure two agents of comlrl"},
        micro_batch_tokens={
            "type": int,
            "nargs": "*",
            "default": [],
            "help": "measure adapters again with these sizes of micro-batches",
        },
        lora_rank=16,
        tasks=1,
        group_size=4,
        max_new_tokens=64,
        precision={"choices": ("float32", "bf16"), "default": "float32"},
        smoke=False,
    )


if __name__ == "__main__":
    main()
