"""diffusers' models."""
import diffusers

from family import Family, field, image, numbers, tokens

LIBRARY = "diffusers"


def unet():
    return diffusers.UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, block_out_channels=(8, 16),
        layers_per_block=1, norm_num_groups=4, attention_head_dim=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"))


def conditional_unet():
    return diffusers.UNet2DConditionModel(
        sample_size=16, block_out_channels=(8, 16), layers_per_block=1,
        norm_num_groups=4, attention_head_dim=4, cross_attention_dim=16,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))


def autoencoder():
    return diffusers.AutoencoderKL(
        block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2)


def dit():
    return diffusers.DiTTransformer2DModel(
        num_attention_heads=2, attention_head_dim=8, in_channels=3, num_layers=2,
        norm_num_groups=4, sample_size=8, patch_size=2, num_embeds_ada_norm=20,
        dropout=0.0)


def sd3():
    return diffusers.SD3Transformer2DModel(
        sample_size=8, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=8,
        num_attention_heads=2, joint_attention_dim=16, caption_projection_dim=16,
        pooled_projection_dim=16, out_channels=4, pos_embed_max_size=8)


def reconstruct(model, image):
    return model.decode(model.encode(image).latent_dist.mode()).sample


time = lambda n, g: tokens(20)(n, g)  # noqa: E731

FAMILIES = [
    Family("unet_2d", LIBRARY, unet, {"sample": image(3, 16, 16), "timestep": time},
           field("sample"), loss="mse"),
    Family("unet_2d_condition", LIBRARY, conditional_unet,
           {"sample": image(4, 16, 16), "timestep": time,
            "encoder_hidden_states": numbers(6, 16)}, field("sample"), loss="mse"),
    Family("autoencoder_kl", LIBRARY, autoencoder, {"image": image(3, 16, 16)},
           reconstruct, loss="mse"),
    Family("dit", LIBRARY, dit,
           {"hidden_states": image(3, 8, 8), "timestep": time, "class_labels": time},
           field("sample"), loss="mse"),
    Family("sd3", LIBRARY, sd3,
           {"hidden_states": image(4, 8, 8), "encoder_hidden_states": numbers(6, 16),
            "pooled_projections": numbers(16), "timestep": time},
           field("sample"), loss="mse"),
]
