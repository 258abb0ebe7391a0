"""python -m loadline.torch.estimate: will this language model train on that GPU?

Builds a causal language model from a configuration, without weights, and prints the table
of `loadline.torch.estimate`. Tested by tests/plugins/python/torch_estimate_test.py.
"""
from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import sys
from typing import Any

import torch
from loadline.budget import SMALLEST, check_whole, parse_budget
from loadline.errors import InvalidArgument, LoadlineError
from loadline.machine import Machine
from loadline.torch.session.estimate import CARD, Estimate, estimate
from loadline.torch.session.llama_shaped import LlamaShaped, Shape
from loadline.torch.session.lora import ATTENTION
from loadline.torch.solve.options import AUTO
from torch import nn

_TYPES = {"bf16": torch.bfloat16, "f32": torch.float32}
# Fields of a configuration of our own besides `model`; a flag wins.
_DEFAULTS: dict[str, Any] = {
    "machine": "rtx-4090", "batch": 1, "sequence": 2048, "dtype": "bf16", "lora": None,
    "targets": None, "micro_batches": None, "split": 1, "offload_gradients": False,
    "update_in_backward": False, "offload_parameters": False,
    "host_memory": None, "budgets": ("100%", CARD, SMALLEST), "time_limit": None}


def _number_or_auto(text: str) -> int | str:
    return text if text == AUTO else int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m loadline.torch.estimate",
        description="Will a language model train on a GPU, how fast, and what is the "
                    "least? Needs neither the GPU nor the weights.")
    parser.add_argument("--config", required=True, metavar="FILE",
                        help="config.json of a transformers model, or its folder; or YAML "
                             "or JSON with the fields of docs/pytorch.md")
    parser.add_argument("--machine",
                        help="a GPU's name or a profile (default: rtx-4090)")
    parser.add_argument("--batch", type=int, help="sequences per step (default: 1)")
    parser.add_argument("--sequence", type=int,
                        help="tokens per sequence (default: 2048)")
    parser.add_argument("--dtype", choices=sorted(_TYPES),
                        help="of parameters, gradients and AdamW's state (default: bf16)")
    parser.add_argument("--lora", type=int, metavar="RANK",
                        help="train adapters only, and keep the weights as they are")
    parser.add_argument("--targets", type=lambda names: names.split(","),
                        help="linear layers that get one (default: "
                             f"{','.join(ATTENTION)})")
    parser.add_argument("--micro-batches", metavar="K", type=_number_or_auto,
                        help="parts of the batch, or auto (default: 1)")
    parser.add_argument("--split", metavar="N", type=_number_or_auto,
                        help="segments of the head, or auto (default: 1)")
    parser.add_argument("--offload-gradients", action="store_true", default=None,
                        help="gradients may be on the host until their update")
    parser.add_argument("--update-in-backward", action="store_true", default=None,
                        help="the same, and updates may run in the backward")
    parser.add_argument("--offload-parameters", action="store_true", default=None,
                        help="the same, and parameters may rest on the host")
    parser.add_argument("--host-memory", metavar="BYTES",
                        help="that copies may take, such as 64GiB (default: the profile's)")
    parser.add_argument("--budget", action="append", metavar="BYTES", dest="budgets",
                        help='such as 22GiB, 60%%, card or smallest; may be repeated '
                             "(default: 100%%, card, smallest)")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS",
                        help="for the search of each budget")
    parser.add_argument("--html", metavar="FILE", help="page of the last budget's plan")
    return parser


def read_config(path: str) -> dict[str, Any]:
    """A JSON or YAML file with an object."""
    file = pathlib.Path(path)
    if file.is_dir():
        file = file / "config.json"
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"--config {path}: {error}") from error
    try:
        read = json.loads(text)
    except ValueError as error:
        if file.suffix == ".json":
            raise InvalidArgument(f"--config {path}: {error}") from error
        try:
            import yaml  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            raise InvalidArgument(
                f"--config {path}: no JSON ({error}), and YAML needs pyyaml: pip install "
                "pyyaml") from error
        try:
            read = yaml.safe_load(text)
        except yaml.YAMLError as problem:
            raise InvalidArgument(f"--config {path}: {problem}") from problem
    if not isinstance(read, dict):
        raise InvalidArgument(f"--config {path}: want an object with fields")
    return read


def _of_transformers(config: str, dtype: torch.dtype) -> nn.Module | None:
    """None: the package is not installed."""
    try:
        import transformers  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return None
    try:
        read = transformers.AutoConfig.from_pretrained(config, local_files_only=True)
        read.use_cache = False
        with torch.device("meta"):
            model: nn.Module = transformers.AutoModelForCausalLM.from_config(
                read, dtype=dtype)
    except (OSError, ValueError, KeyError) as error:
        raise InvalidArgument(f"--config {config}: {error}") from error
    return model


def build(path: str, config: dict[str, Any], dtype: torch.dtype) -> nn.Module:
    """On meta, in training mode. A configuration of transformers makes its own class where
    the package is installed, otherwise a model of the same shape."""
    ours = "model" in config
    model = None if ours else _of_transformers(path, dtype)
    if model is None:
        fields = config["model"] if ours else config
        if not isinstance(fields, dict):
            raise InvalidArgument(f"--config {path}: model: want an object with fields")
        try:
            shape = Shape.read(fields)
        except InvalidArgument as error:
            raise InvalidArgument(f"--config {path}: {error}") from error
        with torch.device("meta"):
            model = LlamaShaped(shape)
    return model.to(dtype).train()


def _machine(name: str, host_memory: int | str | None) -> Machine:
    machine = Machine.load(name)
    return machine if host_memory is None else dataclasses.replace(
        machine, host_bytes=parse_budget(host_memory, 0))


def _settings(given: argparse.Namespace, config: dict[str, Any]) -> dict[str, Any]:
    """Flags, else the configuration's fields, else defaults."""
    read = config if "model" in config else {}
    unknown = read.keys() - _DEFAULTS.keys() - {"model"}
    if unknown:
        raise InvalidArgument(
            f"--config {given.config}: no field {', '.join(sorted(map(str, unknown)))}; "
            f"there are model, {', '.join(_DEFAULTS)}")
    found = {name: getattr(given, name) if getattr(given, name) is not None
             else read.get(name, default) for name, default in _DEFAULTS.items()}
    for name in ("batch", "sequence", "lora"):
        if name == "lora" and found[name] is None:
            continue
        check_whole(name, found[name], 1 << 40)
        if found[name] == 0:
            raise InvalidArgument(f"{name} 0: must be more than 0")
    if found["dtype"] not in _TYPES:
        raise InvalidArgument(f"dtype {found['dtype']!r}: there are {', '.join(_TYPES)}")
    return found


def run(arguments: list[str]) -> Estimate:
    given = _parser().parse_args(arguments)
    config = read_config(given.config)
    settings = _settings(given, config)
    if given.html and os.path.isdir(given.html):
        raise InvalidArgument(f"--html {given.html}: a folder")
    model = build(given.config, config, _TYPES[settings["dtype"]])
    tokens = torch.zeros(settings["batch"], settings["sequence"], dtype=torch.long)
    lora = None if settings["lora"] is None else {
        "rank": settings["lora"], "targets": settings["targets"] or ATTENTION}
    result = estimate(
        model, torch.optim.AdamW, sample={"input_ids": tokens, "labels": tokens},
        machine=_machine(settings["machine"], settings["host_memory"]),
        budgets=settings["budgets"], lora=lora,
        micro_batches=settings["micro_batches"], split=settings["split"],
        offload_gradients=settings["offload_gradients"],
        update_in_backward=settings["update_in_backward"],
        offload_parameters=settings["offload_parameters"],
        time_limit_s=settings["time_limit"])
    print(result)
    if given.html:
        result.report(given.html)
    return result


def main() -> None:
    try:
        run(sys.argv[1:])
    except (LoadlineError, OSError) as error:
        sys.exit(f"loadline.torch.estimate: {error}")
