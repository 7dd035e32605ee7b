# The operator's image: the binary, bash, jq and kubectl, with the paths of the reference image.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends cmake make gcc g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --profile dist --locked && cp target/dist/addon-operator /addon-operator

FROM debian:bookworm-slim
ARG KUBECTL_VERSION=v1.34.2
ARG TARGETARCH=amd64
RUN apt-get update \
 && apt-get install -y --no-install-recommends bash ca-certificates curl jq sed \
 && curl -fsSLo /usr/local/bin/kubectl "https://dl.k8s.io/release/${KUBECTL_VERSION}/bin/linux/${TARGETARCH}/kubectl" \
 && chmod +x /usr/local/bin/kubectl \
 && apt-get purge -y --auto-remove curl && rm -rf /var/lib/apt/lists/*
COPY --from=build /addon-operator /addon-operator
COPY src/hook/shell/shell_lib.sh /shell_lib.sh
COPY src/hook/shell/frameworks /frameworks
RUN ln -s /addon-operator /usr/local/bin/addon-operator && mkdir -p /modules /global-hooks /framework \
 && ln -s /frameworks/shell /framework/shell
ENV MODULES_DIR=/modules GLOBAL_HOOKS_DIR=/global-hooks
WORKDIR /
ENTRYPOINT ["/addon-operator"]
