// Finds the name that a user wrote or probably meant.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// The entry of `names` with the smallest edit distance to `word` (a swap of neighbours counts as one edit). At most a
// third of the longer one's length is accepted, and 1 in any case; names of more than kMaxComparedName bytes are not
// compared. If there is none: the first entry that is a prefix of `word` or has it as a prefix ("batch" for
// "batch_size"), then the first that has it as some of its words ("topk" for "softmax_topk"), or "".
std::string nearest_name(const std::string& word, const std::vector<std::string>& names);

// The end of an error about an unknown name: "; did you mean \"X\"?", or "" where `name` is "".
std::string did_you_mean(const std::string& name);

// The same with the nearest of `names` and their list: "; did you mean \"X\"? (known: X, Y)", " (known: X, Y)".
std::string suggestion(const std::string& word, const std::vector<std::string>& names);

// The index of `name` in `names`. Raises UsageError if it is missing; `what` is what they are names of.
size_t find_position(const std::string& name, const std::vector<std::string>& names, const std::string& what);

// "a, b, c"
std::string join(const std::vector<std::string>& names, const std::string& separator = ", ");

// The entry whose member `name` is `name`. Raises UsageError if there is none; `what` is what the entries are.
template <class Entry>
const Entry& entry_named(const std::string& name, const std::vector<Entry>& entries, const std::string& what) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  return entries[find_position(name, names, what)];
}

}  // namespace sparsight
