#include "sparsight/dg/data_identity.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/data/domainbed/domainbed.h"
#include "sparsight/data/fingerprint.h"

namespace sparsight {
namespace {

constexpr int64_t kLookedAt = 64;  // images, evenly spaced

std::string environment_fingerprint(const DataSet& all) {
  std::vector<std::string> texts = all.info().domains;
  texts.insert(texts.end(), all.info().classes.begin(), all.info().classes.end());
  std::string labels;
  for (int64_t i = 0; i < all.size(); ++i) labels += cat(all.domain(i), ":", all.label(i), " ");
  texts.push_back(std::move(labels));
  const int64_t looked_at = std::min(kLookedAt, all.size());
  for (int64_t i = 0; i < looked_at; ++i) {
    const at::Tensor pixels = all.get(i * all.size() / looked_at).image.contiguous();
    texts.emplace_back(static_cast<const char*>(pixels.const_data_ptr()), pixels.nbytes());
  }
  return fingerprint_texts(texts);
}

}  // namespace

std::string data_identity(const DgRun& run) {
  static std::map<std::pair<std::string, std::string>, std::string> known;  // the runs of a sweep have the same
  std::string& identity = known[{run.set, run.root}];
  if (identity.empty()) {
    DomainBedOptions options;
    options.set = run.set, options.root = run.root;
    identity = environment_fingerprint(*domainbed_environments(options, 0));
  }
  return identity;
}

}  // namespace sparsight
