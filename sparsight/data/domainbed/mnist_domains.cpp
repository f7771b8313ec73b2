#include "sparsight/data/domainbed/mnist_domains.h"

#include <numeric>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/random.h"
#include "sparsight/core/shuffle.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/data/sets/mnist.h"
#include "sparsight/data/transforms/warp.h"

namespace sparsight {
namespace {

constexpr double kLabelFlips = 0.25;
constexpr int64_t kTraining = 60000, kTest = 10000;  // images of MNIST as published

// A part of MNIST is usable, so it is no error; but results are those of another dataset.
void warn_unless_complete(const std::string& folder, int64_t training, int64_t test) {
  if (training != kTraining || test != kTest)
    log_warning(printable(folder), " has ", training, " training and ", test, " test images, MNIST as published ",
                kTraining, " and ", kTest, ": results are not comparable with published ones");
}

// All images of MNIST, and the order in which environments take them.
struct ShuffledMnist {
  at::Tensor images;  // [N,1,28,28] uint8
  std::vector<int64_t> labels, order;
};

ShuffledMnist shuffled_mnist(const std::string& root, uint64_t seed) {
  const std::string folder = data_root(root, "mnist");
  LabelledArray train = read_mnist_part(folder, "train"), test = read_mnist_part(folder, "test");
  if (train.images.sizes().slice(1) != test.images.sizes().slice(1))
    fail(printable(folder), ": training and test images have different sizes");
  warn_unless_complete(folder, train.images.size(0), test.images.size(0));
  ShuffledMnist all{at::cat({train.images, test.images}), std::move(train.labels), {}};
  all.labels.insert(all.labels.end(), test.labels.begin(), test.labels.end());
  if (static_cast<int64_t>(all.labels.size()) != all.images.size(0))
    fail(printable(folder), ": there are not as many labels as images");
  check_labels(all.labels, 10, printable(folder));
  all.order.resize(all.labels.size());
  std::iota(all.order.begin(), all.order.end(), 0);
  RandomStream random(seed, "domainbed.mnist.order");
  shuffle(all.order, random);
  return all;
}

class MnistDomains : public DataSet {
 public:
  MnistDomains(ShuffledMnist mnist, DataInfo info) : mnist_(std::move(mnist)), info_(std::move(info)) {
    info_.height = mnist_.images.size(2), info_.width = mnist_.images.size(3);
    const auto domains = static_cast<int64_t>(info_.domains.size());
    for (int64_t d = 0; d < domains; ++d)
      for (int64_t i = d; i < static_cast<int64_t>(mnist_.order.size()); i += domains)
        images_.push_back({mnist_.order[static_cast<size_t>(i)], d});
  }

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  int64_t domain(int64_t index) const override { return images_.at(static_cast<size_t>(index)).second; }
  int64_t label(int64_t index) const override { return label_of(number(index)); }
  Sample get(int64_t index) const override {
    Sample sample;
    sample.image = image_of(number(index), domain(index));
    sample.label = label(index);
    sample.domain = domain(index);
    sample.id = cat(info_.domains[static_cast<size_t>(sample.domain)], "/", number(index));
    return sample;
  }

 protected:
  // number: of the image in MNIST.
  virtual at::Tensor image_of(int64_t number, int64_t domain) const = 0;
  virtual int64_t label_of(int64_t number) const { return digit_of(number); }
  at::Tensor digit_image(int64_t number) const { return mnist_.images.select(0, number); }
  int64_t digit_of(int64_t number) const { return mnist_.labels[static_cast<size_t>(number)]; }

 private:
  int64_t number(int64_t index) const { return images_.at(static_cast<size_t>(index)).first; }

  ShuffledMnist mnist_;
  DataInfo info_;
  std::vector<std::pair<int64_t, int64_t>> images_;  // number in MNIST, domain
};

class RotatedMnist : public MnistDomains {
 public:
  using MnistDomains::MnistDomains;

 protected:
  at::Tensor image_of(int64_t number, int64_t domain) const override {
    return rotate_bilinear(digit_image(number), 15.0 * static_cast<double>(domain));
  }
};

class ColoredMnist : public MnistDomains {
 public:
  ColoredMnist(ShuffledMnist mnist, DataInfo info, uint64_t seed)
      : MnistDomains(std::move(mnist), std::move(info)), seed_(seed) {}

 protected:
  int64_t label_of(int64_t number) const override {
    return (digit_of(number) < 5 ? 1 : 0) ^ flips("label", number, kLabelFlips);
  }
  at::Tensor image_of(int64_t number, int64_t domain) const override {
    constexpr double kColourFlips[] = {0.1, 0.2, 0.9};
    const int64_t colour = label_of(number) ^ flips("colour", number, kColourFlips[domain]);
    const at::Tensor digit = digit_image(number), none = at::zeros(digit.sizes(), digit.options());
    return colour == 0 ? at::cat({digit, none}) : at::cat({none, digit});
  }

 private:
  int64_t flips(const char* what, int64_t number, double probability) const {
    const RandomStream stream(seed_, cat("domainbed.colored_mnist.", what));
    return static_cast<double>(stream.bits_at(static_cast<uint64_t>(number))) * 0x1p-32 < probability ? 1 : 0;
  }

  uint64_t seed_;
};

}  // namespace

DataSetPtr rotated_mnist(const std::string& root, uint64_t seed) {
  DataInfo info;
  info.name = "rotated_mnist";
  info.classes = number_names(10);
  info.domains = {"0", "15", "30", "45", "60", "75"};
  info.channels = 1;
  return std::make_shared<RotatedMnist>(shuffled_mnist(root, seed), std::move(info));
}

DataSetPtr colored_mnist(const std::string& root, uint64_t seed) {
  DataInfo info;
  info.name = "colored_mnist";
  info.classes = {"5 to 9", "0 to 4"};
  info.domains = {"+90%", "+80%", "-90%"};
  info.channels = 2;
  return std::make_shared<ColoredMnist>(shuffled_mnist(root, seed), std::move(info), seed);
}

}  // namespace sparsight
