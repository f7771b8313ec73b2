#include "sparsight/dist/gloo_group.h"

#include "sparsight/core/error.h"
#include "sparsight/dist/join.h"

#ifdef SPARSIGHT_GLOO
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>

#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#endif

namespace sparsight::dist {

#ifndef SPARSIGHT_GLOO

bool is_available() { return false; }

GroupPtr join_gloo(const GlooSettings&) {
  fail("this build has no collectives for several processes; install gloo's headers (libgloo-dev) and build again");
}

#else

namespace {

constexpr std::chrono::seconds kLongestJoin{300};

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

std::string first_line(const char* text) {
  const std::string all = text;
  return all.substr(0, all.find('\n'));
}

class GlooGroup final : public Group {
 public:
  explicit GlooGroup(const GlooSettings& settings)
      : settings_(settings),
        name_(cat("rank ", settings.rank, " of ", settings.size, " (", host_name(), ")")),
        rank_(settings.rank),
        size_(settings.size) {
    guarded("cannot join its group", [&] {
      store_ = store();
      start();
    });
  }

  // Some ranks of a group; in errors this one keeps the name that it has among all.
  GlooGroup(const GlooGroup& all, const std::string& name, const std::vector<int64_t>& ranks)
      : settings_(all.settings_), name_(all.name_), size_(std::ssize(ranks)) {
    const auto own = std::ranges::find(ranks, all.rank_);
    SPARSIGHT_CHECK(own != ranks.end());
    rank_ = own - ranks.begin();
    guarded("cannot join its group", [&] {
      store_ = c10::make_intrusive<c10d::PrefixStore>(name, all.store_);
      start();
    });
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }
  int64_t restarts() const override { return settings_.restarts; }

  GroupPtr subgroup(const std::string& name, const std::vector<int64_t>& ranks) override {
    if (ranks.size() == 1) return std::make_shared<Group>();
    return std::make_shared<GlooGroup>(*this, name, ranks);
  }

  at::Tensor all_gather(const at::Tensor& part) override {
    at::Tensor from = part.contiguous().view({-1}), to = at::empty({size() * part.numel()}, part.options());
    if (part.numel() > 0) call([&] { return backend_->_allgather_base(to, from); });
    return to.view({size(), part.numel()});
  }

  using Group::broadcast;
  void broadcast(at::Tensor& tensor) override {
    std::vector<at::Tensor> tensors{tensor};
    call([&] { return backend_->broadcast(tensors); });
  }

  at::Tensor all_to_all(const at::Tensor& rows, const std::vector<int64_t>& sent,
                        const std::vector<int64_t>& received) override {
    int64_t count = 0;
    for (const int64_t n : received) count += n;
    std::vector<int64_t> shape = rows.sizes().vec();
    shape.front() = count;
    at::Tensor from = rows.contiguous(), to = at::empty(shape, rows.options());
    std::vector<int64_t> to_counts = received, from_counts = sent;
    call([&] { return backend_->alltoall_base(to, from, to_counts, from_counts); });
    return to;
  }

 private:
  void start() {
    auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(settings_.timeout_seconds));
    options->devices.push_back(device());
    backend_ =
        c10::make_intrusive<c10d::ProcessGroupGloo>(store_, static_cast<int>(rank_), static_cast<int>(size_), options);
  }

  template <class Body>
  void guarded(const char* what, const Body& body) const {
    try {
      body();
    } catch (const std::exception& error) {
      fail(name_, " ", what, ": ", first_line(error.what()));
    }
  }

  template <class Start>
  void call(const Start& start) const {
    guarded("lost its group: another rank has ended, cannot be reached or is late", [&] { start()->wait(); });
  }

  // Listens on loopback for processes of one machine, else on the interface that reaches the store's address, or that
  // GLOO_SOCKET_IFNAME names.
  std::shared_ptr< ::gloo::transport::Device> device() const {
    if (const char* const interface = std::getenv("GLOO_SOCKET_IFNAME"); interface && *interface)
      return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
    const bool local =
        !settings_.store_file.empty() || settings_.address == "127.0.0.1" || settings_.address == "localhost";
    return local ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                 : c10d::ProcessGroupGloo::createDefaultDevice();
  }

  std::chrono::seconds join_time() const {
    return std::min(kLongestJoin, std::chrono::seconds(settings_.timeout_seconds));
  }

  c10::intrusive_ptr<c10d::Store> store() const {
    c10::intrusive_ptr<c10d::Store> store;
    if (!settings_.store_file.empty()) {
      store = c10::make_intrusive<c10d::FileStore>(settings_.store_file, static_cast<int>(settings_.size));
    } else {
      c10d::TCPStoreOptions options;
      options.port = static_cast<uint16_t>(settings_.port);
      options.isServer = settings_.rank == 0 && !settings_.launcher_serves;
      options.numWorkers = static_cast<size_t>(settings_.size);
      options.waitWorkers = !settings_.launcher_serves;
      options.timeout = join_time();
      store = c10::make_intrusive<c10d::TCPStore>(settings_.address, options);
    }
    store->setTimeout(join_time());
    // Keys of a group that was started before would be taken for those of this one.
    return c10::make_intrusive<c10d::PrefixStore>(cat("sparsight/", settings_.restarts), store);
  }

  const GlooSettings settings_;
  const std::string name_;
  int64_t rank_ = 0, size_ = 1;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> backend_;
};

}  // namespace

bool is_available() { return true; }

GroupPtr join_gloo(const GlooSettings& settings) { return std::make_shared<GlooGroup>(settings); }

#endif

}  // namespace sparsight::dist
