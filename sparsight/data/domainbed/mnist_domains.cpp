#include "sparsight/data/domainbed/mnist_domains.h"

#include <iterator>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/data/sets/mnist.h"
#include "sparsight/data/transforms/warp.h"

namespace sparsight {
namespace {

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
  at::Generator random;  // in the state of torch's own when DomainBed has drawn the order
};

std::vector<int64_t> to_vector(const at::Tensor& values) {
  const int64_t* begin = values.const_data_ptr<int64_t>();
  return {begin, begin + values.numel()};
}

ShuffledMnist shuffled_mnist(const std::string& root, uint64_t seed) {
  const std::string folder = data_root(root, "mnist");
  LabelledArray train = read_mnist_part(folder, "train"), test = read_mnist_part(folder, "test");
  if (train.images.sizes().slice(1) != test.images.sizes().slice(1))
    fail(printable(folder), ": training and test images have different sizes");
  warn_unless_complete(folder, train.images.size(0), test.images.size(0));
  ShuffledMnist all{at::cat({train.images, test.images}),
                    std::move(train.labels),
                    {},
                    at::make_generator<at::CPUGeneratorImpl>(seed)};
  all.labels.insert(all.labels.end(), test.labels.begin(), test.labels.end());
  if (static_cast<int64_t>(all.labels.size()) != all.images.size(0))
    fail(printable(folder), ": there are not as many labels as images");
  check_labels(all.labels, 10, printable(folder));
  all.order = to_vector(at::randperm(std::ssize(all.labels), all.random, at::kLong));
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
  int64_t label(int64_t index) const override { return digit_at(index); }
  Sample get(int64_t index) const override {
    Sample sample;
    sample.domain = domain(index);
    sample.image = make_image(index, sample.domain);
    sample.label = label(index);
    sample.id = cat(info_.domains[static_cast<size_t>(sample.domain)], "/", number(index));
    return sample;
  }

 protected:
  virtual at::Tensor make_image(int64_t index, int64_t domain) const = 0;
  at::Tensor digit_image(int64_t index) const { return mnist_.images.select(0, number(index)); }
  int64_t digit_at(int64_t index) const { return mnist_.labels[static_cast<size_t>(number(index))]; }
  const at::Generator& random() const { return mnist_.random; }

 private:
  int64_t number(int64_t index) const { return images_.at(static_cast<size_t>(index)).first; }

  ShuffledMnist mnist_;
  DataInfo info_;
  std::vector<std::pair<int64_t, int64_t>> images_;  // number in MNIST, domain; one domain after the other
};

class RotatedMnist : public MnistDomains {
 public:
  using MnistDomains::MnistDomains;

 protected:
  at::Tensor make_image(int64_t index, int64_t domain) const override {
    return rotate_bilinear(digit_image(index), 15.0 * static_cast<double>(domain));
  }
};

// Draws as DomainBed's torch_bernoulli_ does, for the images of one environment after the other.
class ColoredMnist : public MnistDomains {
 public:
  ColoredMnist(ShuffledMnist mnist, DataInfo info) : MnistDomains(std::move(mnist), std::move(info)) {
    constexpr double kLabelFlips = 0.25, kColourFlips[] = {0.1, 0.2, 0.9};
    for (int64_t domain = 0, index = 0; domain < std::ssize(kColourFlips); ++domain) {
      const int64_t first = index;
      while (index < size() && this->domain(index) == domain) ++index;
      const std::vector<int64_t> other_label = flips(index - first, kLabelFlips),
                                 other_colour = flips(index - first, kColourFlips[domain]);
      for (int64_t i = first; i < index; ++i) {
        const auto in_domain = static_cast<size_t>(i - first);
        labels_.push_back((digit_at(i) < 5 ? 1 : 0) ^ other_label[in_domain]);
        colours_.push_back(labels_.back() ^ other_colour[in_domain]);
      }
    }
  }
  int64_t label(int64_t index) const override { return labels_.at(static_cast<size_t>(index)); }

 protected:
  at::Tensor make_image(int64_t index, int64_t) const override {
    const at::Tensor digit = digit_image(index), none = at::zeros(digit.sizes(), digit.options());
    return colours_.at(static_cast<size_t>(index)) == 0 ? at::cat({digit, none}) : at::cat({none, digit});
  }

 private:
  std::vector<int64_t> flips(int64_t count, double probability) const {
    return to_vector((at::rand({count}, random(), at::kFloat) < probability).to(at::kLong));
  }

  std::vector<int64_t> labels_, colours_;
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
  return std::make_shared<ColoredMnist>(shuffled_mnist(root, seed), std::move(info));
}

}  // namespace sparsight
