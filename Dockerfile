# The operator's image: the binary, bash, busybox, jq and kubectl, with the paths of the reference image.
# Modules and hooks are added by a Dockerfile of yours; docs/operating.md shows one.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends cmake make gcc g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --profile dist --locked && cp target/dist/addon-operator /addon-operator

FROM debian:bookworm-slim AS root
ARG KUBECTL_VERSION=v1.34.2
ARG TARGETARCH=amd64
RUN apt-get update && apt-get install -y --no-install-recommends bash busybox-static ca-certificates curl jq
RUN curl -fsSLo /kubectl "https://dl.k8s.io/release/${KUBECTL_VERSION}/bin/linux/${TARGETARCH}/kubectl" \
 && curl -fsSL "https://dl.k8s.io/release/${KUBECTL_VERSION}/bin/linux/${TARGETARCH}/kubectl.sha256" >/kubectl.sha256 \
 && echo "$(cat /kubectl.sha256)  /kubectl" | sha256sum -c
COPY .ci/image-root /src/.ci/image-root
COPY src/hook/shell /src/src/hook/shell
COPY --from=build /addon-operator /addon-operator
RUN /src/.ci/image-root /image /addon-operator /kubectl

FROM scratch
COPY --from=root /image /
ENV PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin MODULES_DIR=/modules GLOBAL_HOOKS_DIR=/global-hooks
WORKDIR /
EXPOSE 9115
# It collects orphaned processes itself when it is process 1.
ENTRYPOINT ["/addon-operator"]
