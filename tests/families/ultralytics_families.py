"""ultralytics' detectors: body and head, whose outputs are one row of numbers."""
import torch
from ultralytics.nn.tasks import DetectionModel

from family import Family, image

LIBRARY = "ultralytics"


def build(name):
    return DetectionModel(f"{name}.yaml", ch=3, nc=5, verbose=False)


def head(model, image):
    found = model(image)
    while isinstance(found, dict):
        found = [part for part in found.values()]
    flat = []
    for part in found:
        for tensor in (part if isinstance(part, (list, tuple)) else [part]):
            flat.append(tensor.flatten(1))
    return torch.cat(flat, dim=1)


FAMILIES = [
    Family(name, LIBRARY, lambda name=name: build(name), {"image": image(3, 64, 64)},
           head, loss="mse", learning_rate=1e-4)
    for name in ("yolov5n", "yolov8n", "yolo11n")
]
