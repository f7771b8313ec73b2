#include "tests/runtime/c_interface.h"

#include <math.h>
#include <string.h>

#include "sparsight/infer.h"

enum { CLASSES = 12, PIXELS = 3 * 32 * 32 };

#define TEXT(x) #x
#define LINE_TEXT(x) TEXT(x)
#define CHECK(condition)                                          \
  do {                                                            \
    if (!(condition)) return LINE_TEXT(__LINE__) ": " #condition; \
  } while (0)
#define CHECK_OK(call) CHECK((call) == SPARSIGHT_INFER_OK)

static int count_calls(void* user, int64_t decision, const sparsight_infer_routing* routing) {
  int* const calls = (int*)user;
  if (decision != *calls || routing->experts != 10) return 1;
  ++*calls;
  return 0;
}

static const char* check_routing(const sparsight_infer_session* session) {
  sparsight_infer_routing routing;
  CHECK_OK(sparsight_infer_get_routing(session, 1, &routing, sizeof routing));
  CHECK(strcmp(routing.layer, "blocks.5.mlp") == 0);
  CHECK(routing.experts == 10 && routing.images == 1 && routing.tokens_per_image == 65 && routing.prefix_tokens == 1);
  CHECK(routing.grid_height == 8 && routing.grid_width == 8 && routing.assignments == 2 * 65);
  for (int64_t a = 0; a < routing.assignments; ++a) {
    CHECK(routing.token[a] == a / 2 && routing.kept[a] == 1);
    CHECK(routing.expert[a] == routing.expert[a % 2] && routing.expert[a] >= 0 && routing.expert[a] < 10);
  }
  CHECK(fabsf(routing.gate[0] + routing.gate[1] - 1) < 1e-6f && routing.gate[0] >= routing.gate[1]);
  return NULL;
}

static const char* check_answers(sparsight_infer_session* session, int decodes, const void* image, size_t image_bytes) {
  static float pixels[2 * PIXELS];
  static uint8_t grey[5 * 7];
  float logits[2 * CLASSES], probabilities[2 * CLASSES], features[2 * 64], sum = 0;
  const int64_t shape[4] = {2, 3, 32, 32};
  const sparsight_infer_result result = {sizeof result, 2, logits, probabilities, features};
  int calls = 0;

  for (int i = 0; i < PIXELS; ++i) pixels[i] = (float)(i % 101) / 100;
  CHECK_OK(sparsight_infer_classify_pixels(session, pixels, shape, &result));
  CHECK(memcmp(logits, logits + CLASSES, sizeof logits / 2) != 0);
  for (int k = 0; k < CLASSES; ++k) sum += probabilities[k];
  CHECK(fabsf(sum - 1) < 1e-5f);

  CHECK_OK(sparsight_infer_classify_image(session, grey, 5, 7, 1, 7, &result));
  CHECK_OK(sparsight_infer_set_on_routing(session, count_calls, &calls));
  if (decodes)
    CHECK_OK(sparsight_infer_classify_encoded(session, image, image_bytes, &result));
  else
    CHECK_OK(sparsight_infer_classify_image(session, grey, 5, 7, 1, 7, &result));
  CHECK(calls == 2);
  CHECK_OK(sparsight_infer_set_on_routing(session, NULL, NULL));
  return check_routing(session);
}

const char* use_each_function(const char* path, const void* bytes, size_t count, const void* image,
                              size_t image_bytes) {
  sparsight_infer_model *model, *from_memory;
  sparsight_infer_session* session;
  sparsight_infer_info info;

  CHECK(strcmp(sparsight_infer_version(), "0.1.0") == 0);
  CHECK_OK(sparsight_infer_open(path, SPARSIGHT_INFER_ALL_EXPERTS, &model));
  CHECK_OK(sparsight_infer_open_memory(bytes, count, &from_memory));
  CHECK_OK(sparsight_infer_close(from_memory));

  CHECK_OK(sparsight_infer_get_info(model, &info, sizeof info));
  CHECK(info.abi == SPARSIGHT_INFER_ABI && info.channels == 3 && info.height == 32 && info.width == 32);
  CHECK(info.classes == CLASSES && info.features == 64 && info.decisions == 2 && info.independent_classes == 0);
  CHECK(info.takes_images == 1 && info.weight_bytes > 2 * 10 * 4 * 2 * 64 * 256 && info.run_bytes > 0);
  CHECK(strlen(info.instruction_set) > 0);
  CHECK(strcmp(sparsight_infer_class_name(model, 11), "class 11") == 0);
  CHECK(sparsight_infer_class_name(model, CLASSES) == NULL);
  CHECK(strcmp(sparsight_infer_last_error(), "there is no class 12; the model has classes 0 to 11") == 0);

  CHECK_OK(sparsight_infer_open_session(model, &session));
  CHECK_OK(sparsight_infer_set_threads(session, 2));
  CHECK_OK(sparsight_infer_close(model)); /* the session keeps what it needs */
  const char* const wrong = check_answers(session, info.decodes_images == 1, image, image_bytes);
  CHECK_OK(sparsight_infer_close_session(session));
  return wrong;
}
