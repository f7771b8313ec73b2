// The names of vision transformers. Ours are timm's.
#include "sparsight/io/names/namings.h"

namespace sparsight {
namespace {

const std::vector<std::string> kOurVit{"patch_embed.proj.weight", "blocks.#.attn.qkv.weight"};
const std::vector<std::string> kOurDistilledVit{"patch_embed.proj.weight", "blocks.#.attn.qkv.weight", "dist_token"};

std::vector<NameRule> timm_vit_rules() {
  std::vector<NameRule> rules;
  for (const char* name : {"cls_token", "dist_token", "reg_token", "pos_embed", "patch_embed.proj.*", "norm_pre.*",
                           "norm.*", "fc_norm.*", "attn_pool.*", "head.*", "head_dist.*"})
    rules.push_back(same_name(name));
  for (const char* name : {"norm1.*", "attn.qkv.*", "attn.q_norm.*", "attn.k_norm.*", "attn.proj.*", "norm2.*",
                           "mlp.fc1.*", "mlp.fc2.*", "ls1.gamma", "ls2.gamma"})
    append(rules, under("blocks.#.", "blocks.#.", {same_name(name)}));
  return rules;
}

// torchvision.models.vision_transformer (0.12 and later); in_proj holds q, k and v in this order, as timm's qkv does.
// Its files of version 1 have linear_1 and linear_2.
std::vector<NameRule> torchvision_vit_rules() {
  std::vector<NameRule> rules{{{"class_token"}, "cls_token"},
                              {{"encoder.pos_embedding"}, "pos_embed"},
                              {{"conv_proj.*"}, "patch_embed.proj.*"},
                              {{"encoder.ln.*"}, "norm.*"},
                              {{"heads.head.*"}, "head.*"}};
  append(rules, under("encoder.layers.encoder_layer_#.", "blocks.#.",
                      {{{"ln_1.*"}, "norm1.*"},
                       {{"ln_2.*"}, "norm2.*"},
                       {{"self_attention.in_proj_*"}, "attn.qkv.*"},
                       {{"self_attention.out_proj.*"}, "attn.proj.*"},
                       {{"mlp.0.*"}, "mlp.fc1.*"},
                       {{"mlp.3.*"}, "mlp.fc2.*"},
                       {{"mlp.linear_1.*"}, "mlp.fc1.*"},
                       {{"mlp.linear_2.*"}, "mlp.fc2.*"}}));
  return rules;
}

// A block of transformers' ViT and DeiT before version 5, and in all files.
std::vector<NameRule> transformers_file_block() {
  return {{{"attention.attention.query.*", "attention.attention.key.*", "attention.attention.value.*"}, "attn.qkv.*"},
          {{"attention.output.dense.*"}, "attn.proj.*"},
          {{"layernorm_before.*"}, "norm1.*"},
          {{"layernorm_after.*"}, "norm2.*"},
          {{"intermediate.dense.*"}, "mlp.fc1.*"},
          {{"output.dense.*"}, "mlp.fc2.*"}};
}

// A block in version 5.
std::vector<NameRule> transformers_block() {
  return {{{"attention.q_proj.*", "attention.k_proj.*", "attention.v_proj.*"}, "attn.qkv.*"},
          {{"attention.o_proj.*"}, "attn.proj.*"},
          {{"layernorm_before.*"}, "norm1.*"},
          {{"layernorm_after.*"}, "norm2.*"},
          {{"mlp.fc1.*"}, "mlp.fc1.*"},
          {{"mlp.fc2.*"}, "mlp.fc2.*"}};
}

// prefix: the first word of their names, "vit" or "deit". Both spellings are read, and the named one is written.
std::vector<NameRule> transformers_vit_rules(const std::string& prefix, bool version_5) {
  const std::string start = prefix + ".";
  std::vector<NameRule> rules{{{start + "embeddings.cls_token"}, "cls_token"},
                              {{start + "embeddings.position_embeddings"}, "pos_embed"},
                              {{start + "embeddings.patch_embeddings.projection.*"}, "patch_embed.proj.*"},
                              {{start + "layernorm.*"}, "norm.*"},
                              {{"classifier.*"}, "head.*"}};
  const auto files = under(start + "encoder.layer.#.", "blocks.#.", transformers_file_block());
  const auto modules = under(start + "layers.#.", "blocks.#.", transformers_block());
  append(rules, version_5 ? modules : files);
  append(rules, version_5 ? files : modules);
  return rules;
}

// With a distillation token, which has a head of its own.
std::vector<NameRule> distilled_rules(bool version_5) {
  std::vector<NameRule> rules{{{"deit.embeddings.distillation_token"}, "dist_token"},
                              {{"cls_classifier.*"}, "head.*"},
                              {{"distillation_classifier.*"}, "head_dist.*"}};
  append(rules, transformers_vit_rules("deit", version_5));
  return rules;
}

std::vector<WeightNaming> transformers_namings(const std::string& library, bool version_5) {
  const std::string positions = ".embeddings.position_embeddings";
  return {
      {library,
       "DeiTForImageClassificationWithTeacher",
       {"deit" + positions, "distillation_classifier.weight"},
       kOurDistilledVit,
       distilled_rules(version_5)},
      {library, "ViTForImageClassification", {"vit" + positions}, kOurVit, transformers_vit_rules("vit", version_5)},
      {library,
       "DeiTForImageClassification",
       {"deit" + positions},
       kOurVit,
       transformers_vit_rules("deit", version_5)}};
}

// DeiT-III's authors call the factors of layer scale gamma_1 and gamma_2; the rest is timm's. Only read.
WeightNaming deit3_naming() {
  std::vector<NameRule> rules{{{"blocks.#.gamma_1"}, "blocks.#.ls1.gamma"},
                              {{"blocks.#.gamma_2"}, "blocks.#.ls2.gamma"}};
  append(rules, timm_vit_rules());
  return {"DeiT-III", "models_v2", {"blocks.#.gamma_1"}, kOurVit, rules};
}

}  // namespace

std::vector<WeightNaming> vit_namings() {
  std::vector<WeightNaming> namings{
      {"torchvision", "VisionTransformer", {"encoder.pos_embedding"}, kOurVit, torchvision_vit_rules()}};
  for (WeightNaming& naming : transformers_namings("huggingface", /*version_5=*/false)) namings.push_back(naming);
  for (WeightNaming& naming : transformers_namings("transformers-5", /*version_5=*/true)) namings.push_back(naming);
  namings.push_back(deit3_naming());
  namings.push_back({"timm", "VisionTransformer", kOurVit, kOurVit, timm_vit_rules()});
  return namings;
}

}  // namespace sparsight
