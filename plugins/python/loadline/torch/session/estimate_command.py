"""python -m loadline.torch.estimate: will this language model train on that GPU?

Builds a causal language model from a configuration, without weights, and prints the table
of `loadline.torch.estimate`. Tested by tests/plugins/python/torch_estimate_test.py
and torch_estimate_command_test.py.
"""
from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import sys
from typing import Any

import torch
from loadline.budget import SMALLEST, check_whole, parse_budget
from loadline.errors import (Infeasible, InternalError, InvalidArgument, LoadlineError,
                             NotValid, Stopped, Unsupported)
from loadline.machine import Machine
from loadline.torch.session.config_file import one_line, read_config
from loadline.torch.session.estimate import CARD, Estimate, estimate
from loadline.torch.session.llama_shaped import NAMES, LlamaShaped, Shape, check_sizes
from loadline.torch.session.lora import ATTENTION
from loadline.torch.solve.options import AUTO
from loadline.torch.solve.search_log import log
from torch import nn

_TYPES = {"bf16": torch.bfloat16, "f32": torch.float32}
# Fields of a configuration of our own besides `model`; a flag wins.
_DEFAULTS: dict[str, Any] = {
    "machine": "rtx-4090", "batch": 1, "sequence": 2048, "dtype": "bf16", "lora": None,
    "targets": None, "micro_batches": None, "split": 1, "offload_gradients": False,
    "update_in_backward": False, "offload_parameters": False, "host_updates": False,
    "host_memory": None, "budgets": ("100%", CARD, SMALLEST), "time_limit": None}
_FLAGS = ("offload_gradients", "update_in_backward", "offload_parameters", "host_updates")
_MOST_TOKENS = 1 << 28  # of a batch
# Of a configuration of transformers, of which one must be there.
_THEIRS = ("model_type", "architectures", "hidden_size")
# As of the command (docs/command.md); every other error of ours is of the input.
_EXIT_CODES = {Infeasible: 3, Unsupported: 4, Stopped: 5, InternalError: 1, NotValid: 1}


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
    parser.add_argument("--host-updates", action="store_true", default=None,
                        help="optimizer state stays on the host, and updates run there")
    parser.add_argument("--host-memory", metavar="BYTES",
                        help="that copies may take, such as 64GiB (default: the profile's)")
    parser.add_argument("--budget", action="append", metavar="BYTES", dest="budgets",
                        help='such as 22GiB, 60%%, card or smallest; may be repeated '
                             "(default: 100%%, card, smallest)")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS",
                        help="for the search of each budget")
    parser.add_argument("--html", metavar="FILE", help="page of the last budget's plan")
    return parser


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
    except Exception as error:  # of any kind, where a field has a wrong value
        raise InvalidArgument(f"--config {config}: transformers makes no model of it: "
                              f"{type(error).__name__}: {one_line(error)}") from error
    for name, parameter in model.named_parameters():
        if not parameter.numel():
            raise InvalidArgument(f"--config {config}: {name} has no elements")
    return model


def build(path: str, config: dict[str, Any], dtype: torch.dtype) -> nn.Module:
    """On meta, in training mode. A configuration of transformers makes its own class where
    the package is installed, otherwise a model of the same shape."""
    ours = "model" in config
    if not ours and not any(name in config for name in _THEIRS):
        raise InvalidArgument(f"--config {path}: no field model, and none of a configuration "
                              f"of transformers ({', '.join(_THEIRS)})")
    if not ours:
        try:
            # Some of its models have a list of sizes, one for each layer.
            check_sizes({name: value for name, value in config.items()
                         if name in NAMES and isinstance(value, (int, float))})
        except InvalidArgument as error:
            raise InvalidArgument(f"--config {path}: {error}") from error
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


def _machine(name: Any, host_memory: int | str | None) -> Machine:
    if not isinstance(name, str) or not name:
        raise InvalidArgument(f"machine {name!r}: want a GPU's name or the path of a profile")
    try:
        machine = Machine.load(name)
    except OSError as error:
        raise InvalidArgument(f"machine {name}: {one_line(error)}") from error
    if host_memory is None:
        return machine
    try:
        return dataclasses.replace(machine, host_bytes=parse_budget(host_memory))
    except InvalidArgument:
        raise InvalidArgument(
            f"host_memory {host_memory!r}: want bytes, such as 64GiB") from None


def _check(name: str, value: Any) -> None:
    """Raises InvalidArgument for what argparse does not check, or a file can have."""
    if name in ("batch", "sequence") or name == "lora" and value is not None:
        check_whole(name, value, _MOST_TOKENS if name != "lora" else 1 << 20, least=1)
    if name == "dtype" and (not isinstance(value, str) or value not in _TYPES):
        raise InvalidArgument(f"dtype {value!r}: there are {', '.join(_TYPES)}")
    if name in _FLAGS and not isinstance(value, bool):
        raise InvalidArgument(f"{name}={value!r}: want true or false")
    if name == "targets" and value is not None and not (
            isinstance(value, list) and value and all(
                isinstance(one, str) and one for one in value)):
        raise InvalidArgument(f"targets={value!r}: want a list of names, such as {ATTENTION}")


def _settings(given: argparse.Namespace, config: dict[str, Any]) -> dict[str, Any]:
    """Flags, else the configuration's fields, else defaults."""
    read = config if "model" in config else {}
    unknown = read.keys() - _DEFAULTS.keys() - {"model"}
    if unknown:
        raise InvalidArgument(
            f"--config {given.config}: no field {', '.join(sorted(map(str, unknown)))}; "
            f"there are model, {', '.join(_DEFAULTS)}")
    found = {}
    for name, default in _DEFAULTS.items():
        flag = getattr(given, name)
        found[name] = read.get(name, default) if flag is None else flag
        try:
            _check(name, found[name])
        except InvalidArgument as error:
            if flag is not None:
                raise
            raise InvalidArgument(f"--config {given.config}: {error}") from None
    if found["batch"] * found["sequence"] > _MOST_TOKENS:
        raise InvalidArgument(
            f"batch {found['batch']} and sequence {found['sequence']}: more than "
            f"{_MOST_TOKENS} tokens in a step")
    if found["targets"] is not None and found["lora"] is None:
        raise InvalidArgument("targets are the layers that get adapters: give lora a rank")
    return found


def run(arguments: list[str]) -> Estimate:
    given = _parser().parse_args(arguments)
    config = read_config(given.config)
    settings = _settings(given, config)
    if given.html is not None:  # before the search, which takes long
        folder = os.path.dirname(given.html) or "."
        if os.path.isdir(given.html) or not os.access(folder, os.W_OK):
            raise InvalidArgument(
                f"--html {given.html}: " + ("a folder" if os.path.isdir(given.html)
                                            else f"cannot write into {folder}"))
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
        host_updates=settings["host_updates"],
        time_limit_s=settings["time_limit"])
    print(result)
    if given.html is not None:
        result.report(given.html)
    return result


def _show_progress() -> None:
    """On stderr, what estimate and the search say of themselves."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def main() -> None:
    _show_progress()
    try:
        run(sys.argv[1:])
    except (LoadlineError, OSError) as error:
        print(f"loadline.torch.estimate: {error}", file=sys.stderr)
        sys.exit(next((code for kind, code in _EXIT_CODES.items()
                       if isinstance(error, kind)), 2))
    except KeyboardInterrupt:
        sys.exit(130)
