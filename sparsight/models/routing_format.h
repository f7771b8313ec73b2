// Names in routing files, shared by what writes and what reads them.
#pragma once

#include <string>

namespace sparsight {

inline constexpr const char* kRoutingFormat = "sparsight.routings";
inline constexpr const char* kRoutingVersion = "2";      // choices may be [n,S,K]; with logits and images
inline constexpr const char* kFlatRoutingVersion = "1";  // choices are [A]

// What there is for each image: [n] int64, [n] int64, all ids concatenated as UTF-8, and [n] int64: where each ends.
inline constexpr const char* kImageLabels = "images/label";
inline constexpr const char* kImageDomains = "images/domain";
inline constexpr const char* kImageIds = "images/id";
inline constexpr const char* kImageIdEnds = "images/id_end";

inline constexpr const char* kCleanLogits = "clean_logits";  // of each layer: [n,S,E]

}  // namespace sparsight
