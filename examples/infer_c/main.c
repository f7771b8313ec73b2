/* Classifies an image file with a frozen model, in C: infer_c MODEL IMAGE. Prints the three most probable classes, and
 * the experts that the image used. */
#include <sparsight/infer.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int status) {
  if (status == SPARSIGHT_INFER_OK) return;
  fprintf(stderr, "error: %s\n", sparsight_infer_last_error());
  exit(1);
}

static char* read_whole_file(const char* path, size_t* size) {
  FILE* const file = fopen(path, "rb");
  char* bytes = NULL;
  if (file && fseek(file, 0, SEEK_END) == 0) {
    const long end = ftell(file);
    rewind(file);
    bytes = end > 0 ? malloc((size_t)end) : NULL;
    *size = bytes ? fread(bytes, 1, (size_t)end, file) : 0;
  }
  if (file) fclose(file);
  if (bytes) return bytes;
  fprintf(stderr, "error: cannot read %s\n", path);
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: infer_c MODEL IMAGE\n");
    return 2;
  }
  sparsight_infer_model* model;
  sparsight_infer_session* session;
  sparsight_infer_info info;
  check(sparsight_infer_open(argv[1], SPARSIGHT_INFER_ALL_EXPERTS, &model));
  check(sparsight_infer_get_info(model, &info, sizeof info));
  check(sparsight_infer_open_session(model, &session));

  size_t size = 0;
  char* const bytes = read_whole_file(argv[2], &size);
  float* const probabilities = calloc((size_t)info.classes, sizeof(float));
  const sparsight_infer_result result = {sizeof result, 1, NULL, probabilities, NULL};
  check(sparsight_infer_classify_encoded(session, bytes, size, &result));

  for (int place = 0; place < 3 && place < info.classes; ++place) {
    int64_t best = 0;
    for (int64_t k = 1; k < info.classes; ++k)
      if (probabilities[k] > probabilities[best]) best = k;
    printf("%s %.1f %%\n", sparsight_infer_class_name(model, best), 100 * probabilities[best]);
    probabilities[best] = -1;
  }
  for (int64_t decision = 0; decision < info.decisions; ++decision) {
    sparsight_infer_routing routing;
    check(sparsight_infer_get_routing(session, decision, &routing, sizeof routing));
    int* const used = calloc((size_t)routing.experts, sizeof(int));
    for (int64_t a = 0; a < routing.assignments; ++a) used[routing.expert[a]] |= routing.kept[a];
    printf("%s:", routing.layer);
    for (int64_t e = 0; e < routing.experts; ++e)
      if (used[e]) printf(" expert %lld", (long long)e);
    printf("\n");
    free(used);
  }
  free(probabilities);
  free(bytes);
  check(sparsight_infer_close_session(session));
  check(sparsight_infer_close(model));
  return 0;
}
