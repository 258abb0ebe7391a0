"""torchvision's classes, with channels divided where widths are no arguments."""
import torch
import torchvision
from torchvision import models

from family import Family, image, narrowed

LIBRARY = "torchvision"


def row(name, factor, make, size=64, arguments=None, **options):
    def build():
        return make(**{"weights": None, "num_classes": 10, **(arguments or {})})
    return Family(name, LIBRARY, narrowed(factor, build),
                  {"image": image(3, size, size)}, **options)


def deep(*args, **options):
    """A deep network with batches of few numbers, for which rounding grows fast."""
    return row(*args, learning_rate=1e-4, **options)


def dictionary(key):
    return lambda model, image: model(image)[key]


def detector(model, image):
    """A detector's backbone and heads, without the boxes' selection."""
    found = model.head(list(model.backbone(image).values()))
    return torch.cat([part.flatten(1) for part in found.values()], dim=1)


def detector_row(name, factor, make, **arguments):
    def build():
        return make(weights=None, weights_backbone=None, num_classes=10, **arguments)
    return Family(name, LIBRARY, narrowed(factor, build),
                  {"image": image(3, 128, 128)}, detector, loss="mse")


def maxvit():
    return models.MaxVit(input_size=(64, 64), stem_channels=8, partition_size=2,
                         block_channels=[8, 16], block_layers=[1, 1], head_dim=4,
                         stochastic_depth_prob=0.2, num_classes=10)


def swin(block=None):
    return models.SwinTransformer(
        patch_size=[4, 4], embed_dim=16, depths=[2, 2], num_heads=[2, 4],
        window_size=[4, 4], stochastic_depth_prob=0.2, num_classes=10, block=block)


def swin_v2():
    from torchvision.models import swin_transformer as s
    return models.SwinTransformer(
        patch_size=[4, 4], embed_dim=16, depths=[2, 2], num_heads=[2, 4],
        window_size=[4, 4], num_classes=10, block=s.SwinTransformerBlockV2,
        downsample_layer=s.PatchMergingV2)


def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    return ConvNeXt([CNBlockConfig(16, 32, 1), CNBlockConfig(32, None, 2)],
                    stochastic_depth_prob=0.2, num_classes=10)


def vit():
    return models.VisionTransformer(image_size=32, patch_size=8, num_layers=2,
                                    num_heads=4, hidden_dim=32, mlp_dim=64,
                                    num_classes=10)


def densenet():
    return models.DenseNet(growth_rate=4, block_config=(2, 3, 3, 2),
                           num_init_features=8, drop_rate=0.1, num_classes=10)


small = {"image": image(3, 64, 64)}
video = {"video": image(3, 8, 32, 32)}

FAMILIES = [
    row("alexnet", 8, models.alexnet, 224),
    row("vgg16", 16, models.vgg16, 224),
    deep("vgg16_bn", 16, models.vgg16_bn, 224),
    deep("resnet152", 16, models.resnet152),
    deep("resnext50", 16, models.resnext50_32x4d),
    deep("wide_resnet50", 16, models.wide_resnet50_2),
    Family("densenet", LIBRARY, densenet, small, learning_rate=1e-4),
    row("squeezenet1_0", 4, models.squeezenet1_0),
    row("squeezenet1_1", 4, models.squeezenet1_1),
    deep("googlenet", 8, models.googlenet,
         arguments={"aux_logits": False, "init_weights": True}),
    deep("inception_v3", 8, models.inception_v3, 96,
         arguments={"aux_logits": False, "init_weights": True}),
    deep("mobilenet_v2", 8, models.mobilenet_v2),
    deep("mobilenet_v3_small", 8, models.mobilenet_v3_small),
    deep("mobilenet_v3_large", 8, models.mobilenet_v3_large),
    deep("mnasnet0_5", 8, models.mnasnet0_5),
    deep("shufflenet_v2_x1_0", 2, models.shufflenet_v2_x1_0),
    deep("efficientnet_b0", 8, models.efficientnet_b0),
    deep("efficientnet_v2_s", 8, models.efficientnet_v2_s),
    deep("regnet_y_400mf", 8, models.regnet_y_400mf),
    deep("regnet_x_400mf", 8, models.regnet_x_400mf),
    Family("convnext", LIBRARY, convnext, small),
    Family("vit", LIBRARY, vit, {"image": image(3, 32, 32)}),
    Family("swin", LIBRARY, swin, small),
    Family("swin_v2", LIBRARY, swin_v2, small),
    Family("maxvit", LIBRARY, maxvit, small, learning_rate=1e-4),
    deep("fcn_resnet50", 16, models.segmentation.fcn_resnet50,
         arguments={"weights_backbone": None}, output=dictionary("out"), class_axis=1),
    deep("deeplabv3_mobilenet", 8, models.segmentation.deeplabv3_mobilenet_v3_large,
         arguments={"weights_backbone": None}, output=dictionary("out"), class_axis=1),
    deep("lraspp_mobilenet", 8, models.segmentation.lraspp_mobilenet_v3_large,
         arguments={"weights_backbone": None}, output=dictionary("out"), class_axis=1),
    Family("r3d_18", LIBRARY, narrowed(8, models.video.r3d_18, num_classes=10), video,
           learning_rate=1e-4),
    Family("r2plus1d_18", LIBRARY, narrowed(16, models.video.r2plus1d_18, num_classes=10),
           video, learning_rate=1e-4),
    detector_row("retinanet", 16, models.detection.retinanet_resnet50_fpn),
]
