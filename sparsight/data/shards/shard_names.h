// The names of shards: patterns with ranges in braces, and what a name may be.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// "train-{000..002}.tar" -> train-000.tar, train-001.tar, train-002.tar; "{a,b}-{0..1}.tar" -> a-0, a-1, b-0, b-1.
// Numbers have as many digits as the first one of their range. "a.tar::b.tar" are two patterns. Raises UsageError that
// begins with `setting` for braces that do not close or are empty, for a name twice, and for more than kMaxShards.
std::vector<std::string> expand_shards(const std::string& pattern, const std::string& setting);

inline constexpr size_t kMaxShards = 1'000'000;

// Whether it is a relative path that stays in its folder, in one line.
bool is_shard_name(const std::string& name);

}  // namespace sparsight
