"""timm's models, by their names, with small widths where they are arguments."""
import timm

from family import Family, image, narrowed

LIBRARY = "timm"


def row(name, size=64, factor=None, rate=0.01, **arguments):
    def build():
        return timm.create_model(name, pretrained=False, num_classes=10, **arguments)
    return Family(name, LIBRARY, narrowed(factor, build) if factor else build,
                  {"image": image(3, size, size)}, learning_rate=rate)


def transformer(name, size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4,
                **arguments):
    return row(name, size, img_size=size, patch_size=patch_size, embed_dim=embed_dim,
               depth=depth, num_heads=num_heads, **arguments)


deep = 1e-4

FAMILIES = [
    transformer("vit_tiny_patch16_224", drop_path_rate=0.1),
    transformer("deit_tiny_distilled_patch16_224"),
    transformer("beit_base_patch16_224"),
    transformer("cait_xxs24_224"),
    transformer("eva02_tiny_patch14_224"),
    row("swin_tiny_patch4_window7_224", 64, img_size=64, window_size=4, embed_dim=16,
        depths=(2, 2), num_heads=(2, 4), drop_path_rate=0.1),
    row("swinv2_tiny_window8_256", 64, img_size=64, window_size=4, embed_dim=16,
        depths=(2, 2), num_heads=(2, 4)),
    row("convnext_atto", 64, dims=(8, 16, 24, 32), depths=(1, 1, 2, 1),
        drop_path_rate=0.1),
    row("convnextv2_atto", 64, dims=(8, 16, 24, 32), depths=(1, 1, 2, 1)),
    row("mixer_s32_224", 64, img_size=64),
    row("gmlp_ti16_224", 64, img_size=64),
    row("resmlp_12_224", 64, img_size=64),
    row("poolformer_s12", 64),
    row("coat_tiny", 64, img_size=64),
    row("levit_128s", 64, img_size=64, embed_dim=(16, 24, 32), num_heads=(2, 3, 4),
        key_dim=8, depth=(1, 1, 1), rate=deep),
    row("edgenext_xx_small", 64, dims=(8, 16, 24, 32), depths=(1, 2, 2, 2)),
    row("mobilevit_xxs", 64, rate=deep),
    row("pit_ti_224", 64, img_size=64, base_dims=(8, 8, 8), heads=(2, 4, 8),
        depth=(1, 1, 1)),
    row("xcit_nano_12_p16_224", 64, img_size=64, embed_dim=32, depth=2, num_heads=4,
        rate=deep),
    row("twins_svt_small", 64, img_size=64, embed_dims=(8, 16, 24, 32),
        num_heads=(1, 2, 3, 4), depths=(1, 1, 2, 1)),
    row("pvt_v2_b0", 64, embed_dims=(8, 16, 24, 32),
        num_heads=(1, 2, 3, 4), depths=(1, 1, 1, 1)),
    row("davit_tiny", 64, embed_dims=(8, 16), num_heads=(2, 4), depths=(1, 1),
        window_size=4),
    row("focalnet_tiny_srf", 64),
    row("convmixer_768_32", 64, factor=16, rate=deep),
    row("ghostnet_050", 64, rate=deep),
    row("res2net50_26w_4s", 64, rate=deep),
    row("resnest14d", 64, factor=4, rate=deep),
    row("skresnet18", 64, rate=deep),
    row("repvgg_a0", 64, factor=8, rate=deep),
    row("mobileone_s0", 64, factor=8, rate=deep),
    row("fastvit_t8", 64, embed_dims=(8, 16, 24, 32), layers=(1, 1, 1, 1), rate=deep),
    row("dm_nfnet_f0", 64, factor=8),
    row("tf_efficientnet_b0", 64, factor=8, rate=deep),
    row("mobilenetv4_conv_small", 64, factor=8, rate=deep),
    row("cspdarknet53", 64, factor=16, rate=deep),
    row("dla34", 64, factor=8, rate=deep),
    row("hrnet_w18_small", 64, rate=deep),
    row("rexnet_100", 64, rate=deep),
    row("inception_next_atto", 64, dims=(8, 16, 24, 32), depths=(1, 1, 1, 1), rate=deep),
    row("starnet_s1", 64, base_dim=8, depths=(1, 1, 1, 1), rate=deep),
    row("hiera_tiny_224", 64, img_size=(64, 64), embed_dim=16, num_heads=1,
        stages=(1, 1, 1, 1)),
    row("sequencer2d_s", 64, embed_dims=(16, 16, 16, 16), layers=(1, 1, 1, 1),
        hidden_sizes=(8, 8, 8, 8), img_size=64),
    row("visformer_tiny", 64, img_size=64, embed_dim=32, depth=(1, 1, 1), num_heads=4, rate=deep),
    row("selecsls42", 64, factor=8, rate=deep),
    row("vovnet39a", 64, factor=8, rate=deep),
]
