// The files of a folder of records (docs/file_formats.md): names shared by the writer and the reader.
#pragma once

#include <cstdint>
#include <string>

namespace sparsight {

inline constexpr int64_t kRecordFormat = 2;       // the latest; 2 has label sets
inline constexpr int64_t kSingleLabelFormat = 1;  // of images with one label, for earlier versions of the program
inline constexpr const char* kRecordIndex = "index.json";
inline constexpr const char* kRecordTensors = "records.safetensors";

// Columns of records.safetensors.
inline constexpr const char* kLabelColumn = "label";      // [n] int64
inline constexpr const char* kLabelSetColumn = "labels";  // [n,K] uint8 of multi-label data, 1: one of its classes
inline constexpr const char* kDomainColumn = "domain";    // [n] int64
inline constexpr const char* kPredictionColumn = "prediction";  // [n] int64
inline constexpr const char* kLogitsColumn = "logits";          // [n,K] fp32 or fp64
inline constexpr const char* kIdColumn = "id";                  // [bytes] uint8: all ids concatenated
inline constexpr const char* kIdEndColumn = "id_end";           // [n] int64: where each id ends
// Where routers are guided: the image's super-class [n] int64, and what each router takes for it [n] int64, the expert
// of the largest probability (analysis/router_accuracy.h).
inline constexpr const char* kSuperClassColumn = "super_class";
inline std::string router_choice_column(const std::string& layer) { return "router_choice/" + layer; }
// For each layer that chooses experts, [n,E] int32: assignments of the image's tokens before and after capacity.
inline std::string chosen_column(const std::string& layer) { return "chosen/" + layer; }
inline std::string kept_column(const std::string& layer) { return "kept/" + layer; }
// For each layer that mixes tokens (Soft MoE), [n,E] fp32: the mean weight of the expert's slots in the image's tokens.
inline std::string combine_column(const std::string& layer) { return "combine/" + layer; }

}  // namespace sparsight
