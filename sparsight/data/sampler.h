// The order in which a loader visits the images of a dataset in one epoch.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/random.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

inline constexpr int64_t kShuffleBuffer = 10'000;

// One epoch's indices into `data`, a function of (seed, epoch, fewest):
//   sequential       0, 1, 2, ...
//   shuffle          every image once, in random order
//   class_balanced   as many samples as images; class counts differ by at most one, images of a class are in random
//                    order and start again when they are used up
//   domain_balanced  the same by domain
//   replacement      as many samples as images, with replacement
//   weighted         as many samples as images, with replacement, image i with probability proportional to
//                    class_weights[label(i)]
//   shards           every image once: shards (DataSet::shard) in random order, and their images one after the other;
//                    then image i of these is put at i plus a random number below `shuffle_buffer`, so that it moves by
//                    fewer places than that, and shards are read almost from begin to end
// class_balanced, domain_balanced and weighted give at least `fewest` samples, as they choose groups before images.
// Raises UsageError if class_weights does not fit the classes, or for `shards` where images are in none.
std::vector<int64_t> epoch_order(const std::string& sampling, const DataSet& data,
                                 const std::vector<double>& class_weights, uint64_t seed, int64_t epoch,
                                 int64_t fewest = 0, int64_t shuffle_buffer = kShuffleBuffer);

// Repeated augmentation (Hoffer et al. 2020, "Augment your batch"; DeiT): the first images of `order`, each `views`
// times in a row, and as many indices as before, so that the last image may have fewer views.
std::vector<int64_t> repeated(const std::vector<int64_t>& order, int64_t views);

// The number of its indices.
int64_t epoch_samples(const std::string& sampling, const DataSet& data, int64_t fewest);

// The names that epoch_order knows.
const std::vector<std::string>& sampling_names();

}  // namespace sparsight
