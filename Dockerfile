# The program in an image of Debian: see docs/install.md.
FROM debian:bookworm AS build
WORKDIR /source
COPY . .
# The package has a copy of libtorch, for which only a build without CUDA is small enough: the index of such builds.
ARG SPARSIGHT_TORCH_INDEX
RUN DEBIAN_FRONTEND=noninteractive ./dev package /packages

FROM debian:bookworm-slim
COPY --from=build /packages/ /packages/
RUN apt-get update \
  && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates libcurl4 /packages/sparsight_*.deb \
  && rm -rf /packages /var/lib/apt/lists/*
WORKDIR /data
ENTRYPOINT ["sparsight"]
CMD ["--help"]
