# An image with the five tools, without a shell and not run by root:
#
#   docker build -t blis .
#   docker run --rm -v "$PWD:/data" -u "$(id -u)" blis blis-sim -c cluster.yaml workload.jsonl.zst -o run.jsonl.zst
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /out/ ./cmd/...

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/ /usr/local/bin/
WORKDIR /data
USER 65532:65532
CMD ["blis-sim", "--help"]
