// The auction algorithm of Bertsekas, in the form for groups of identical objects (Bertsekas and Castañon 1989, "The
// auction algorithm for the transportation problem"): tokens bid for seats of experts. An expert's price is the lowest
// price of its seats. A token bids for the expert with the largest score - price, and raises the price until that
// expert is epsilon worse for it than the second best. The owner of the cheapest seat is evicted. When all seats are
// taken no token can gain more than epsilon by moving, so the sum is within N * epsilon of the optimum. Each round
// starts from the prices of the round before, which had a larger epsilon.
#include "sparsight/moe/routers/balanced_assignment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <vector>

#include <ATen/ops/empty.h>

namespace sparsight {
namespace {

constexpr double kFirstEpsilon = 0.5, kLastEpsilon = 1e-5, kEpsilonStep = 5;  // as multiples of the range of the scores

struct Seat {
  double price;
  int64_t token;
  // The top of a priority queue is the cheapest seat; for equal prices, the one of the highest token.
  bool operator<(const Seat& other) const {
    return price > other.price || (price == other.price && token < other.token);
  }
};

// scores: rows of `experts`; as many rows as there are seats, `seats` for each expert.
class Auction {
 public:
  Auction(const std::vector<double>& scores, int64_t experts, int64_t seats)
      : scores_(scores),
        experts_(static_cast<size_t>(experts)),
        seats_(static_cast<size_t>(seats)),
        start_(experts_, 0),
        price_(experts_, 0) {}

  // Afterwards every token has a seat.
  void round(double epsilon) {
    start_ = price_;
    taken_.assign(experts_, {});
    std::queue<int64_t> waiting;
    for (size_t token = 0; token < experts_ * seats_; ++token) waiting.push(static_cast<int64_t>(token));
    while (!waiting.empty()) {
      const int64_t token = waiting.front();
      waiting.pop();
      const auto [expert, price] = bid(token, epsilon);
      auto& seats = taken_[expert];
      if (seats.size() == seats_) {
        waiting.push(seats.top().token);
        seats.pop();
      }
      seats.push({price, token});
      price_[expert] = seats.size() == seats_ ? seats.top().price : start_[expert];
    }
  }

  // Returns owner[token] = expert, and empties the seats.
  std::vector<int64_t> owners() {
    std::vector<int64_t> owner(experts_ * seats_);
    for (size_t expert = 0; expert < experts_; ++expert)
      for (; !taken_[expert].empty(); taken_[expert].pop())
        owner[static_cast<size_t>(taken_[expert].top().token)] = static_cast<int64_t>(expert);
    return owner;
  }

 private:
  std::pair<size_t, double> bid(int64_t token, double epsilon) const {
    const double* score = scores_.data() + static_cast<size_t>(token) * experts_;
    constexpr double kNone = -std::numeric_limits<double>::infinity();
    double best = kNone, second = kNone;
    size_t expert = 0;
    for (size_t e = 0; e < experts_; ++e) {
      const double value = score[e] - price_[e];
      if (value > best) {
        second = best;
        best = value;
        expert = e;
      } else {
        second = std::max(second, value);
      }
    }
    return {expert, price_[expert] + (experts_ == 1 ? 0 : best - second) + epsilon};
  }

  const std::vector<double>& scores_;
  size_t experts_, seats_;
  std::vector<double> start_;  // [E] price of a seat not yet taken in this round
  std::vector<double> price_;  // [E]
  std::vector<std::priority_queue<Seat>> taken_;
};

}  // namespace

at::Tensor balanced_assignment(const at::Tensor& scores) {
  const int64_t tokens = scores.size(0), experts = scores.size(1);
  const at::Tensor plain = scores.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* in = plain.const_data_ptr<double>();
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (int64_t i = 0; i < plain.numel(); ++i)
    if (std::isfinite(in[i])) {
      low = std::min(low, in[i]);
      high = std::max(high, in[i]);
    }
  if (!(low <= high)) low = high = 0;
  // Scores are shifted by the lowest, since prices are of the order of the range: next to much larger scores a bid
  // would be lost to rounding and the auction would never end. Scaling by a power of two, which is exact, avoids
  // overflow.
  int exponent = 0;
  std::frexp(std::max(std::abs(low), std::abs(high)), &exponent);
  const auto above_low = [&](double score) {
    return std::ldexp(score, -exponent - 1) - std::ldexp(low, -exponent - 1);
  };
  const double range = high > low ? above_low(high) : 1;

  const int64_t seats = (tokens + experts - 1) / experts;
  // Rows past the tokens are dummy tokens with equal scores for all experts: they take the remaining seats.
  std::vector<double> values(static_cast<size_t>(seats * experts * experts), 0);
  for (int64_t i = 0; i < plain.numel(); ++i) {
    const bool worst = std::isnan(in[i]) || in[i] < low;
    values[static_cast<size_t>(i)] = worst ? -range : std::min(above_low(in[i]), 2 * range);
  }
  Auction auction(values, experts, seats);
  for (double epsilon = kFirstEpsilon; epsilon > kLastEpsilon; epsilon /= kEpsilonStep) auction.round(epsilon * range);
  auction.round(kLastEpsilon * range);
  const std::vector<int64_t> owner = auction.owners();
  at::Tensor assigned = at::empty({tokens}, at::kLong);
  std::copy(owner.begin(), owner.begin() + tokens, assigned.data_ptr<int64_t>());
  return assigned.to(scores.device());
}

}  // namespace sparsight
