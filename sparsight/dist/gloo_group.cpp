#include "sparsight/dist/gloo_group.h"

#include "sparsight/core/error.h"
#include "sparsight/dist/join.h"

#ifdef SPARSIGHT_GLOO
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <numeric>
#include <thread>

#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "sparsight/core/checksum.h"
#include "sparsight/core/printable.h"
#include "sparsight/dist/address.h"
#include "sparsight/dist/peers.h"
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

constexpr std::chrono::seconds kForVerdict{5};   // that ranks wait longer than rank 0, which says what is wrong
constexpr std::chrono::seconds kForFarewell{1};  // that a rank takes to tell the store of the loss of its group

// While it exists, writing to a rank that has gone is an error, not a signal that ends the process: in this thread, and
// for good in threads that it starts, as those of gloo.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    constexpr timespec kNow{};
    if (sigismember(&before_, SIGPIPE) == 0)
      while (sigtimedwait(&pipe_, nullptr, &kNow) > 0) {  // those that came
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

// What errors name, which a group and its subgroups share.
struct Context {
  std::vector<Peer> peers;  // by rank
  int64_t step = -1;        // of the training; -1: none yet
  c10::intrusive_ptr<c10d::Store> store;
};

class GlooGroup final : public Group {
 public:
  explicit GlooGroup(const GlooSettings& settings)
      : settings_(settings),
        name_(rank_name(settings.rank, settings.size)),
        context_(std::make_shared<Context>()),
        members_(static_cast<size_t>(settings.size)),
        rank_(settings.rank),
        size_(settings.size) {
    std::iota(members_.begin(), members_.end(), 0);
    guarded("cannot join its group", [&] {
      context_->store = store_ = store();
      start();
      const std::string own = Peer{host_name(), listening_}.to_text();
      for (const std::string& peer : all_gather_bytes(own)) context_->peers.push_back(Peer::from_text(peer));
    });
  }

  // Some ranks of a group; in errors this one keeps the name that it has among all.
  GlooGroup(const GlooGroup& all, const std::string& name, const std::vector<int64_t>& ranks)
      : settings_(all.settings_), name_(all.name_), context_(all.context_), size_(std::ssize(ranks)) {
    const auto own = std::ranges::find(ranks, all.rank_);
    SPARSIGHT_CHECK(own != ranks.end());
    rank_ = own - ranks.begin();
    for (const int64_t rank : ranks) members_.push_back(all.members_.at(static_cast<size_t>(rank)));
    guarded("cannot join its group", [&] {
      store_ = c10::make_intrusive<c10d::PrefixStore>(name, all.store_);
      start();
    });
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }
  int64_t restarts() const override { return settings_.restarts; }
  void set_step(int64_t step) override { context_->step = step; }

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
    const NoPipeSignal no_signal;
    try {
      body();
    } catch (const std::exception& error) {
      fail(name_, " ", what, ": ", gloo_reason(error.what()));
    }
  }

  template <class Start>
  void call(const Start& start) const {
    const NoPipeSignal no_signal;
    try {
      start()->wait();
    } catch (const std::exception& error) {
      const std::string step = context_->step < 0 ? "" : cat(" at step ", context_->step);
      fail(name_, " lost its group", step, ": ", culprit(error.what()), ": ", gloo_reason(error.what()));
    }
  }

  // Who has ended or hangs, as far as this rank can know.
  std::string culprit(const std::string& error) const {
    std::vector<int64_t> others = members_;
    others.erase(others.begin() + rank_);
    const std::vector<int64_t> lost = lost_ranks(find_peers(error, context_->peers, others), others);
    return (lost.empty() ? "another rank" : describe_peers(lost, context_->peers)) +
           " has ended, cannot be reached or is late";
  }

  // A rank that has lost the group closes its connections too, so that others take it for the one that has ended; but
  // it tells the store. So these are the ones of `closed` that do not, or else of all. On a thread of its own, which is
  // left behind where the store's host does not answer, as the process ends soon.
  std::vector<int64_t> lost_ranks(const std::vector<int64_t>& closed, const std::vector<int64_t>& others) const {
    using Ranks = std::vector<int64_t>;
    const auto promise = std::make_shared<std::promise<Ranks> >();
    std::future<Ranks> lost = promise->get_future();
    std::thread([promise, closed, others, store = context_->store, own = members_.at(static_cast<size_t>(rank_))] {
      try {
        put(*store, farewell(own), "");
        const Ranks silent = missing(*store, closed, kForFarewell);
        promise->set_value(silent.empty() ? missing(*store, others, kForVerdict) : silent);
      } catch (const std::exception&) {  // the store's host has ended too
        promise->set_value(closed.empty() ? others : closed);
      }
    }).detach();
    if (lost.wait_for(2 * kForVerdict) == std::future_status::ready) return lost.get();
    return closed.empty() ? others : closed;
  }

  static std::vector<int64_t> missing(c10d::Store& store, const std::vector<int64_t>& ranks,
                                      std::chrono::seconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    std::vector<int64_t> found;
    for (const int64_t rank : ranks)
      if (!comes(store, farewell(rank), left_until(end))) found.push_back(rank);
    return found;
  }

  // Listens on loopback for processes of one machine, else on the address from which the store's is reached, or that of
  // the interface which GLOO_SOCKET_IFNAME names.
  std::shared_ptr< ::gloo::transport::Device> device() {
    if (const char* const interface = std::getenv("GLOO_SOCKET_IFNAME"); interface && *interface) {
      listening_ = interface_addresses(interface);
      return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
    }
    listening_ = {settings_.store_file.empty() ? own_address(settings_.address, settings_.port) : "127.0.0.1"};
    return c10d::ProcessGroupGloo::createDeviceForHostname(listening_.front());
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
      if (options.isServer) options.masterListenFd = bound_socket(settings_.address, settings_.port);
      options.waitWorkers = false;
      options.timeout = join_time();
      store = connected(options);
    }
    store->setTimeout(join_time());
    // Keys of a group that was started before would be taken for those of this one.
    return shake_hands(c10::make_intrusive<c10d::PrefixStore>(cat("sparsight/", settings_.restarts), store));
  }

  // c10d waits without end for the answer of a program that takes connections and says nothing. It is left behind then,
  // on a thread of its own, as the process ends soon.
  c10::intrusive_ptr<c10d::Store> connected(const c10d::TCPStoreOptions& options) const {
    using Store = c10::intrusive_ptr<c10d::Store>;
    const auto promise = std::make_shared<std::promise<Store> >();
    std::future<Store> store = promise->get_future();
    std::thread([promise, options, address = settings_.address] {
      try {
        promise->set_value(c10::make_intrusive<c10d::TCPStore>(address, options));
      } catch (...) {
        promise->set_exception(std::current_exception());
      }
    }).detach();
    if (store.wait_for(join_time() + kForVerdict) == std::future_status::ready) return store.get();
    fail("what listens on port ", settings_.port, " of ", printable(settings_.address),
         " does not answer as rank 0 does; choose another MASTER_PORT");
  }

  // Whether rank 0 is of this run, then, where only those who know the token look, whether all ranks have come and run
  // the same program. Rank 0 waits for the others and tells all what is wrong. Returns where this group's keys are.
  c10::intrusive_ptr<c10d::Store> shake_hands(const c10::intrusive_ptr<c10d::Store>& store) const {
    const std::string run = compute_checksum("run " + settings_.token);
    if (settings_.rank == 0)
      put(*store, "run", run);
    else if (!comes(*store, "run", join_time()))
      fail("rank 0 has not come within ", join_time().count(), " s");
    else if (get(*store, "run") != run)
      fail("rank 0 there belongs to another run; give each run an address and port of its own");
    auto own = c10::make_intrusive<c10d::PrefixStore>("token " + settings_.token, store);
    if (settings_.rank == 0) {
      put(*own, "verdict", verdict(*own));
    } else {
      put(*own, hello(settings_.rank), program());
      if (!comes(*own, "verdict", join_time() + kForVerdict))
        fail("rank 0 has not answered within ", join_time().count(), " s");
    }
    const std::string said = get(*own, "verdict");
    if (said != kNothingWrong) {
      if (settings_.rank == 0)
        wait_for_readers(*own);
      else
        own->add(kReaders, 1);
      fail(said);
    }
    return own;
  }

  std::string program() const { return settings_.program.empty() ? SPARSIGHT_VERSION : settings_.program; }

  // What is wrong with the other ranks, once all have come or the time is over.
  std::string verdict(c10d::Store& store) const {
    const auto end = std::chrono::steady_clock::now() + join_time();
    std::string missing, other;
    for (int64_t rank = 1; rank < settings_.size; ++rank) {
      const std::string key = hello(rank);
      const bool has_come = comes(store, key, left_until(end));
      if (!has_come && missing.empty())
        missing = cat("rank ", rank, " has not come within ", join_time().count(),
                      " s; is it running, with the same address, port and run?");
      if (!has_come || !other.empty()) continue;
      if (const std::string version = get(store, key); version != program())
        other = cat("rank ", rank, " runs version ", version, " of the program, rank 0 ", program(),
                    "; install the same one on all hosts");
    }
    return !other.empty() ? other : !missing.empty() ? missing : kNothingWrong;
  }

  // Rank 0 serves the store in which the others read the verdict.
  void wait_for_readers(c10d::Store& store) const {
    const auto end = std::chrono::steady_clock::now() + kForVerdict;
    int64_t here = 0;
    for (int64_t rank = 1; rank < settings_.size; ++rank) here += store.check({hello(rank)});
    while (store.add(kReaders, 0) < here && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  static std::string hello(int64_t rank) { return cat("hello/", rank); }
  static std::string farewell(int64_t rank) { return cat("farewell/", rank); }

  static std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point end) {
    using std::chrono::milliseconds;
    const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    return std::max(left, milliseconds(1));
  }

  static void put(c10d::Store& store, const std::string& key, const std::string& text) {
    store.set(key, std::vector<uint8_t>(text.begin(), text.end()));
  }

  static std::string get(c10d::Store& store, const std::string& key) {
    const std::vector<uint8_t> bytes = store.get(key);
    return {bytes.begin(), bytes.end()};
  }

  // Whether a key is set within the time.
  static bool comes(c10d::Store& store, const std::string& key, std::chrono::milliseconds time) {
    try {
      store.wait({key}, time);
      return true;
    } catch (const std::exception&) {
      return store.check({key});
    }
  }

  static constexpr const char *kNothingWrong = "welcome", *kReaders = "readers";

  const GlooSettings settings_;
  const std::string name_;
  std::shared_ptr<Context> context_;
  std::vector<int64_t> members_;  // by their ranks among all
  int64_t rank_ = 0, size_ = 1;
  std::vector<std::string> listening_;  // addresses
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> backend_;
};

}  // namespace

bool is_available() { return true; }

GroupPtr join_gloo(const GlooSettings& settings) { return std::make_shared<GlooGroup>(settings); }

#endif

}  // namespace sparsight::dist
