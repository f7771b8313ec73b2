/* Runs frozen models (`sparsight export RUN --format sparsight`) without torch and without Python. Guide and examples:
 * docs/deploy.md.
 *
 * A model is read once and never changes: any number of threads may use it. A session is the memory of one run at a
 * time: give each thread a session of its own. Apart from the names of classes and the text of the last error, each
 * function returns a sparsight_infer_status, and never throws, exits or prints.
 *
 * Structures grow at their end. Their size, as the caller knows it, is passed with them, so that a program works with a
 * later library of the same ABI number. Letters: B images, C channels, H height, W width, K classes, D features, A
 * assignments of tokens to experts. */
#ifndef SPARSIGHT_INFER_H
#define SPARSIGHT_INFER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts changes after which programs must be compiled again; it is the number in the name of the shared library. */
#define SPARSIGHT_INFER_ABI 1

#if defined(__GNUC__)
#define SPARSIGHT_INFER_API __attribute__((visibility("default")))
#else
#define SPARSIGHT_INFER_API
#endif

typedef enum sparsight_infer_status {
  SPARSIGHT_INFER_OK = 0,
  SPARSIGHT_INFER_BAD_ARGUMENT = 1, /* null, a count or shape that is not allowed, pixels that are not finite */
  SPARSIGHT_INFER_BAD_MODEL = 2,    /* the file cannot be read, is not a frozen model or is damaged */
  SPARSIGHT_INFER_BAD_IMAGE = 3,    /* an image cannot be decoded, or does not become pixels of the model */
  SPARSIGHT_INFER_NO_MEMORY = 4,    /* there is not enough memory */
  SPARSIGHT_INFER_BUSY = 5,         /* the session is in use, by another thread or by the call that it called from */
  SPARSIGHT_INFER_STOPPED = 6,      /* the caller's function stopped the run */
  SPARSIGHT_INFER_NOT_FINITE = 7,   /* the model's answer is not finite: its training failed */
  SPARSIGHT_INFER_INTERNAL = 8      /* a mistake of this library */
} sparsight_infer_status;

typedef struct sparsight_infer_model sparsight_infer_model;
typedef struct sparsight_infer_session sparsight_infer_session;

typedef struct sparsight_infer_info {
  int64_t abi;                     /* SPARSIGHT_INFER_ABI of the library */
  int64_t channels, height, width; /* C, H, W of the pixels */
  int64_t classes;                 /* K */
  int64_t features;                /* D: numbers that the last layer sees of an image */
  int64_t decisions;               /* how many decisions the routers make in a run */
  int64_t weight_bytes;
  int64_t run_bytes;           /* memory of a session for each image of a batch */
  int64_t independent_classes; /* 1: the probability of each class is its sigmoid; 0: softmax */
  int64_t takes_images;        /* 1: the model says how the bytes of an image become its pixels */
  int64_t decodes_images;      /* 1: the library decodes image files */
  const char* instruction_set; /* "avx512": what the kernels use; valid until the model is closed */
  /* What became of SPARSIGHT_INFER_PACK_CACHE. 1: packed weights were taken from the file; 2: the file was written now;
   * -1: it cannot be written; 0: not asked for, or another process writes it. */
  int64_t pack_cache;
} sparsight_infer_info;

/* Where an answer goes, in the caller's memory. An array that is null is not written. */
typedef struct sparsight_infer_result {
  size_t struct_bytes;  /* sizeof(sparsight_infer_result) */
  int64_t images;       /* for how many images each array has room: at least B */
  float* logits;        /* [B,K] */
  float* probabilities; /* [B,K] */
  float* features;      /* [B,D] */
} sparsight_infer_result;

/* A decision: which experts of a layer each token of a batch chose. Token t belongs to image t / tokens_per_image. */
typedef struct sparsight_infer_routing {
  const char* layer;                         /* "blocks.3.mlp", or "router" for a decision that layers share */
  int64_t experts, images, tokens_per_image; /* a router of whole images gives all tokens of an image its choices */
  int64_t prefix_tokens;                     /* leading tokens of an image that are not patches */
  int64_t grid_height, grid_width;           /* of the patches; 0 where tokens have no grid */
  int64_t assignments;                       /* A; 0 for routers that mix tokens (Soft MoE) */
  const int64_t* token;                      /* [A] */
  const int64_t* expert;                     /* [A] */
  const float* gate;                         /* [A] */
  const unsigned char* kept;                 /* [A]: 0 for what the experts' capacity dropped */
} sparsight_infer_routing;

/* Called after each decision, before the experts compute: a caller can fetch their weights. Anything but 0 stops the
 * run. It runs on the thread that called, must not throw, and must not use the session. */
typedef int (*sparsight_infer_on_routing)(void* user, int64_t decision, const sparsight_infer_routing* routing);

/* "0.1.0" */
SPARSIGHT_INFER_API const char* sparsight_infer_version(void);

/* What went wrong in the last call on this thread that did not return SPARSIGHT_INFER_OK: one line of UTF-8, valid
 * until the next such call. Never null. */
SPARSIGHT_INFER_API const char* sparsight_infer_last_error(void);

/* kept_experts: SPARSIGHT_INFER_ALL_EXPERTS reads all weights now. Otherwise an expert's weights (in all layers) are
 * read when an image chooses it, and so many experts stay in memory, the least recently used being dropped first; the
 * file stays open. 0 keeps those of the current run alone. Answers have the same bits. */
#define SPARSIGHT_INFER_ALL_EXPERTS (-1)
/* Added to kept_experts, of up to 2^60: the weights that are read now, packed for this CPU, are kept in a file beside
 * the model, "PATH.<instruction set>.packed" (or ".consistent.packed", by SPARSIGHT_ARITHMETIC). Later calls, of any
 * process, map it instead of packing again. A file that is missing, damaged, of another model or another library is
 * written anew; where it cannot be, the model is opened without it. Answers have the same bits. */
#define SPARSIGHT_INFER_PACK_CACHE (-INT64_C(0x4000000000000000))
SPARSIGHT_INFER_API int sparsight_infer_open(const char* path, int64_t kept_experts, sparsight_infer_model** model);

/* The bytes are copied, all of them. */
SPARSIGHT_INFER_API int sparsight_infer_open_memory(const void* bytes, size_t count, sparsight_infer_model** model);

/* Sessions that are still open keep what they need. Null is allowed. */
SPARSIGHT_INFER_API int sparsight_infer_close(sparsight_infer_model* model);

SPARSIGHT_INFER_API int sparsight_infer_get_info(const sparsight_infer_model* model, sparsight_infer_info* info,
                                                 size_t info_bytes);

/* UTF-8; the number as text for a model without names. Null for a number that is not from 0 to K - 1. Valid until the
 * model is closed. */
SPARSIGHT_INFER_API const char* sparsight_infer_class_name(const sparsight_infer_model* model, int64_t number);

/* A session computes on the calling thread alone, unless sparsight_infer_set_threads() says otherwise. */
SPARSIGHT_INFER_API int sparsight_infer_open_session(const sparsight_infer_model* model,
                                                     sparsight_infer_session** session);

/* Null is allowed. */
SPARSIGHT_INFER_API int sparsight_infer_close_session(sparsight_infer_session* session);

/* threads: from 1 to 1024, the caller's among them. Their number changes no bit of an answer. */
SPARSIGHT_INFER_API int sparsight_infer_set_threads(sparsight_infer_session* session, int64_t threads);

/* Null for `call` ends the calls. */
SPARSIGHT_INFER_API int sparsight_infer_set_on_routing(sparsight_infer_session* session,
                                                       sparsight_infer_on_routing call, void* user);

/* pixels: [B,C,H,W] from 0 to 1, as the model normalises them itself. shape: {B, C, H, W}. Nothing is allocated after
 * the first runs with as many images, if all weights are in memory. */
SPARSIGHT_INFER_API int sparsight_infer_classify_pixels(sparsight_infer_session* session, const float* pixels,
                                                        const int64_t shape[4], const sparsight_infer_result* result);

/* An image of any size in rows of interleaved bytes, grey (channels = 1) or RGB (3): it is resized and cropped as in
 * the model's evaluation. row_bytes: from one row to the next. */
SPARSIGHT_INFER_API int sparsight_infer_classify_image(sparsight_infer_session* session, const uint8_t* bytes,
                                                       int64_t height, int64_t width, int64_t channels,
                                                       int64_t row_bytes, const sparsight_infer_result* result);

/* The same for the bytes of an image file: JPEG, PNG, WebP, GIF, BMP or TIFF. */
SPARSIGHT_INFER_API int sparsight_infer_classify_encoded(sparsight_infer_session* session, const void* bytes,
                                                         size_t count, const sparsight_infer_result* result);

/* A decision of the last call that classified, in the order in which they were made. The arrays are valid until the
 * next call that classifies, or closes the session. */
SPARSIGHT_INFER_API int sparsight_infer_get_routing(const sparsight_infer_session* session, int64_t decision,
                                                    sparsight_infer_routing* routing, size_t routing_bytes);

#ifdef __cplusplus
}
#endif

#endif
