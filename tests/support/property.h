// Property tests with random arguments (RapidCheck): a failing case is shrunk to a small one and printed.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace sparsight::test {

inline uint64_t number_of_environment(const char* name, uint64_t usual) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : usual;
}

// Runs `property`, a callable that generates its arguments with *generator and checks them with RC_ASSERT or
// must_hold(), on `runs` random cases of growing size. The cases are the same each time; the environment variables
// SPARSIGHT_PROPERTY_SEED and SPARSIGHT_PROPERTY_RUNS change them.
template <class Property>
void for_all(const Property& property, int runs = 40) {
  rc::detail::TestMetadata metadata;
  metadata.id = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  rc::detail::TestParams params;
  params.seed = number_of_environment("SPARSIGHT_PROPERTY_SEED", 1);
  params.maxSuccess = static_cast<int>(number_of_environment("SPARSIGHT_PROPERTY_RUNS", static_cast<uint64_t>(runs)));
  const rc::detail::TestResult result = rc::detail::checkTestable(property, metadata, params);
  if (result.is<rc::detail::SuccessResult>()) return;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  ADD_FAILURE() << text.str() << "\nAgain: SPARSIGHT_PROPERTY_SEED=" << params.seed
                << " SPARSIGHT_PROPERTY_RUNS=" << params.maxSuccess;
}

inline void must_hold(const ::testing::AssertionResult& result, const std::string& what = "") {
  if (!result) RC_FAIL(what + ": " + result.message());
}

// Numbers in a range, both ends included; shrinks towards `low`.
inline rc::Gen<int64_t> from_to(int64_t low, int64_t high) { return rc::gen::inRange<int64_t>(low, high + 1); }

// A seed for random_tensor(); not shrunk, as that would be meaningless.
inline rc::Gen<uint64_t> any_seed() {
  return rc::gen::noShrink(rc::gen::resize(100, rc::gen::inRange<uint64_t>(1, 1 << 20)));
}

}  // namespace sparsight::test
