"""transformers' models, from their configurations."""
import torch
import transformers as t

from family import Family, field, image, labels, numbers, padding, tokens

LIBRARY = "transformers"
VOCABULARY = 64
LENGTH = 12

SMALL = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2,
         "num_attention_heads": 4, "intermediate_size": 48,
         "max_position_embeddings": 32, "pad_token_id": 0, "bos_token_id": 1,
         "eos_token_id": 2}
VISION = {"image_size": 32, "patch_size": 8, "hidden_size": 32, "num_labels": 10,
          "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
text = {"input_ids": tokens(VOCABULARY, LENGTH)}
masked = {**text, "attention_mask": padding(LENGTH)}


def row(name, config, model, inputs, output="logits", sizes=SMALL, loss="cross_entropy",
        rate=0.01, constants=None, class_axis=-1, **arguments):
    def build():
        return getattr(t, model)(getattr(t, config)(**{**sizes, **arguments}))
    made = output if callable(output) else field(output, **(constants or {}))
    buffers = ("final_logits_bias",)
    return Family(name, LIBRARY, build, inputs, made, loss, class_axis, rate,
                  buffers=buffers)


def causal(name, prefix, inputs=masked, **arguments):
    """A language model that predicts the next token. With a mask, because without
    one the older exporter meets aten::diff, which it does not know."""
    return row(name, f"{prefix}Config", f"{prefix}ForCausalLM", inputs,
               constants={"use_cache": False}, **arguments)


def grouped(name, prefix, inputs=masked, **arguments):
    return causal(name, prefix, inputs, num_key_value_heads=2, head_dim=8, **arguments)


def masked_lm(name, prefix, **arguments):
    return row(name, f"{prefix}Config", f"{prefix}ForMaskedLM", masked, **arguments)


def vision(name, prefix, size=32, **arguments):
    return row(name, f"{prefix}Config", f"{prefix}ForImageClassification",
               {"pixel_values": image(3, size, size)}, sizes=VISION, **arguments)


def encoder_decoder(model, input_ids, decoder_input_ids):
    return model(input_ids=input_ids, decoder_input_ids=decoder_input_ids,
                 use_cache=False).logits


def detections(model, pixel_values):
    found = model(pixel_values=pixel_values)
    return torch.cat([found.logits, found.pred_boxes], -1)


def clip(model, input_ids, pixel_values):
    return model(input_ids=input_ids, pixel_values=pixel_values).logits_per_image.sum(
        1, keepdim=True)


def clip_config():
    return t.CLIPModel(t.CLIPConfig(text_config={**SMALL, "projection_dim": 16},
                                    vision_config={**VISION, "projection_dim": 16},
                                    projection_dim=16))


pair = {**text, "decoder_input_ids": tokens(VOCABULARY, 9)}
BART = {"vocab_size": VOCABULARY, "d_model": 32, "encoder_layers": 2,
        "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 32,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "decoder_start_token_id": 1, "forced_eos_token_id": None}
T5 = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2,
      "num_heads": 4, "pad_token_id": 0, "decoder_start_token_id": 0}
GPT2 = {"vocab_size": VOCABULARY, "n_positions": 32, "n_embd": 32, "n_layer": 2,
        "n_head": 4, "bos_token_id": 1, "eos_token_id": 2}
SPEECH = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
          "intermediate_size": 48, "conv_dim": (16, 16), "conv_kernel": (10, 3),
          "conv_stride": (5, 2), "num_feat_extract_layers": 2, "vocab_size": 20,
          "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
          "mask_time_prob": 0.0, "layerdrop": 0.0, "apply_spec_augment": False}

FAMILIES = [
    masked_lm("bert", "Bert"),
    row("bert_labels", "BertConfig", "BertForMaskedLM",
        {**masked, "labels": labels(VOCABULARY, LENGTH)}, "loss", loss="model"),
    masked_lm("roberta", "Roberta"),
    row("distilbert", "DistilBertConfig", "DistilBertForMaskedLM", masked,
        sizes={"vocab_size": VOCABULARY, "dim": 32, "hidden_dim": 48, "n_layers": 2,
               "n_heads": 4, "max_position_embeddings": 32}),
    masked_lm("albert", "Albert", embedding_size=16),
    masked_lm("electra", "Electra", embedding_size=16),
    masked_lm("deberta", "Deberta", relative_attention=True,
              pos_att_type=["c2p", "p2c"]),
    masked_lm("deberta_v2", "DebertaV2", relative_attention=True,
              pos_att_type=["c2p", "p2c"]),
    masked_lm("mpnet", "MPNet"),
    masked_lm("modernbert", "ModernBert"),
    masked_lm("roformer", "RoFormer", embedding_size=32),
    masked_lm("mobilebert", "MobileBert", embedding_size=16, intra_bottleneck_size=16,
              true_hidden_size=16),
    row("fnet", "FNetConfig", "FNetForMaskedLM", text, tpu_short_seq_length=LENGTH),
    row("t5", "T5Config", "T5ForConditionalGeneration", pair, encoder_decoder, sizes=T5),
    row("flan_t5", "T5Config", "T5ForConditionalGeneration", pair, encoder_decoder,
        sizes=T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    row("bart", "BartConfig", "BartForConditionalGeneration", pair, encoder_decoder,
        sizes=BART),
    row("pegasus", "PegasusConfig", "PegasusForConditionalGeneration", pair,
        encoder_decoder, sizes=BART),
    row("gpt2", "GPT2Config", "GPT2LMHeadModel", text, constants={"use_cache": False},
        sizes=GPT2),
    row("gpt2_mask", "GPT2Config", "GPT2LMHeadModel", masked,
        constants={"use_cache": False}, sizes=GPT2),
    row("gpt2_labels", "GPT2Config", "GPT2LMHeadModel",
        {**masked, "labels": labels(VOCABULARY, LENGTH)}, "loss", loss="model",
        constants={"use_cache": False}, sizes=GPT2),
    causal("gpt_neo", "GPTNeo", num_layers=2, num_heads=4, window_size=4,
           attention_types=[[["global", "local"], 1]]),
    causal("gpt_neox", "GPTNeoX"),
    row("gptj", "GPTJConfig", "GPTJForCausalLM", masked, constants={"use_cache": False},
        sizes=GPT2, rotary_dim=4),
    row("opt", "OPTConfig", "OPTForCausalLM", masked, constants={"use_cache": False},
        ffn_dim=48, word_embed_proj_dim=32),
    row("bloom", "BloomConfig", "BloomForCausalLM", masked,
        constants={"use_cache": False}, n_layer=2, n_head=4),
    grouped("llama", "Llama", text),
    grouped("llama_mask", "Llama", masked),
    grouped("qwen2", "Qwen2"),
    grouped("qwen3", "Qwen3"),
    grouped("mistral", "Mistral", sliding_window=6),
    grouped("gemma", "Gemma"),
    grouped("gemma2", "Gemma2", sliding_window=6, query_pre_attn_scalar=8),
    row("gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM", masked,
        constants={"use_cache": False}, num_key_value_heads=2, head_dim=8,
        sliding_window=6, query_pre_attn_scalar=8),
    causal("phi", "Phi"),
    causal("phi3", "Phi3"),
    causal("falcon", "Falcon"),
    causal("falcon_alibi", "Falcon", alibi=True),
    grouped("stablelm", "StableLm"),
    grouped("olmo2", "Olmo2"),
    grouped("cohere", "Cohere"),
    grouped("mixtral", "Mixtral", num_local_experts=4,
            experts_implementation="batched_mm"),
    grouped("qwen2_moe", "Qwen2Moe", num_experts=4, num_experts_per_tok=2,
            moe_intermediate_size=16, shared_expert_intermediate_size=16,
            experts_implementation="batched_mm"),
    grouped("qwen3_moe", "Qwen3Moe", num_experts=4, num_experts_per_tok=2,
            moe_intermediate_size=16, experts_implementation="batched_mm"),
    grouped("olmoe", "Olmoe", num_experts=4, num_experts_per_tok=2,
            experts_implementation="batched_mm"),
    grouped("gpt_oss", "GptOss", num_local_experts=4, num_experts_per_tok=2,
            sliding_window=6, experts_implementation="batched_mm"),
    causal("deepseek_v3", "DeepseekV3", n_routed_experts=4, num_experts_per_tok=2,
           moe_intermediate_size=16, n_group=1, topk_group=1, kv_lora_rank=8,
           q_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8,
           first_k_dense_replace=1, experts_implementation="batched_mm"),
    grouped("jamba", "Jamba", mamba_d_state=4, mamba_d_conv=3, mamba_dt_rank=4,
            num_experts=2, attn_layer_period=2, attn_layer_offset=1,
            expert_layer_period=2, expert_layer_offset=1, use_mamba_kernels=False,
            experts_implementation="batched_mm"),
    causal("rwkv", "Rwkv", context_length=32),
    causal("falcon_mamba", "FalconMamba", state_size=4, expand=2, conv_kernel=3,
           time_step_rank=4),
    causal("mamba2", "Mamba2", state_size=4, expand=2, conv_kernel=3, head_dim=8,
           num_heads=8, n_groups=2, chunk_size=4),
    grouped("lfm2", "Lfm2", layer_types=["conv", "full_attention"]),
    grouped("cohere2", "Cohere2", sliding_window=6),
    row("xlnet", "XLNetConfig", "XLNetLMHeadModel", masked,
        sizes={"vocab_size": VOCABULARY, "d_model": 32, "n_layer": 2, "n_head": 4,
               "d_inner": 48}, constants={"use_mems": False}),
    row("funnel", "FunnelConfig", "FunnelForMaskedLM", masked,
        sizes={"vocab_size": VOCABULARY, "block_sizes": [1, 1], "d_model": 32,
               "n_head": 4, "d_head": 8, "d_inner": 48, "num_decoder_layers": 1}),
    masked_lm("esm", "Esm", position_embedding_type="rotary", mask_token_id=3),
    row("umt5", "UMT5Config", "UMT5ForConditionalGeneration", pair, encoder_decoder,
        sizes=T5),
    causal("mamba", "Mamba", state_size=4, expand=2, conv_kernel=3, time_step_rank=4),
    vision("vit", "ViT"),
    vision("deit", "DeiT"),
    vision("beit", "Beit", use_relative_position_bias=True,
           use_absolute_position_embeddings=False),
    vision("dinov2", "Dinov2", mlp_ratio=2),
    row("swin", "SwinConfig", "SwinForImageClassification",
        {"pixel_values": image(3, 32, 32)}, sizes={}, image_size=32, patch_size=2,
        embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, num_labels=10),
    row("convnextv2", "ConvNextV2Config", "ConvNextV2ForImageClassification",
        {"pixel_values": image(3, 32, 32)}, sizes={}, hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1], num_labels=10),
    row("segformer", "SegformerConfig", "SegformerForSemanticSegmentation",
        {"pixel_values": image(3, 64, 64)}, sizes={}, hidden_sizes=[8, 16, 24, 32],
        num_attention_heads=[1, 2, 3, 4], depths=[1, 1, 1, 1], num_labels=10,
        decoder_hidden_size=16, rate=1e-3, class_axis=1),
    Family("clip", LIBRARY, clip_config,
           {**text, "pixel_values": image(3, 32, 32)}, clip, loss="mse"),
    Family("clip_vision", LIBRARY,
           lambda: t.CLIPVisionModel(t.CLIPVisionConfig(**VISION)),
           {"pixel_values": image(3, 32, 32)}, field("pooler_output"), loss="mse"),
    Family("whisper_encoder", LIBRARY,
           lambda: t.WhisperModel(t.WhisperConfig(
               **BART, num_mel_bins=8, max_source_positions=20)).encoder,
           {"input_features": numbers(8, 40)}, field("last_hidden_state"), loss="mse"),
    row("vit_mae", "ViTMAEConfig", "ViTMAEForPreTraining",
        {"pixel_values": image(3, 32, 32), "noise": numbers(16)}, "loss", sizes=VISION,
        loss="model", decoder_hidden_size=16, decoder_num_hidden_layers=1,
        decoder_num_attention_heads=2, decoder_intermediate_size=32, mask_ratio=0.5),
    row("detr", "DetrConfig", "DetrForObjectDetection",
        {"pixel_values": image(3, 64, 64)}, detections, sizes={}, loss="mse", rate=1e-4,
        backbone_config=t.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
            layer_type="basic", out_features=["stage4"]),
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
        num_queries=6, num_labels=5),
    row("wav2vec2_conformer", "Wav2Vec2ConformerConfig", "Wav2Vec2ConformerForCTC",
        {"input_values": numbers(800)}, sizes=SPEECH, conv_depthwise_kernel_size=7,
        position_embeddings_type="relative"),
    row("wav2vec2", "Wav2Vec2Config", "Wav2Vec2ForCTC", {"input_values": numbers(800)},
        sizes=SPEECH),
    row("hubert", "HubertConfig", "HubertForCTC", {"input_values": numbers(800)},
        sizes=SPEECH),
    Family("gpt2_embeddings", LIBRARY,
           lambda: t.GPT2Model(t.GPT2Config(**GPT2)),
           {"inputs_embeds": numbers(LENGTH, 32)},
           field("last_hidden_state", use_cache=False), loss="mse"),
]
