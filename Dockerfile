# sigmapca with torch for CPUs:
#   docker build -t sigmapca .
#   docker run --rm -v "$PWD":/work sigmapca train data=array data.path=FILE.npy k=10
# With a GPU: --build-arg TORCH=cu128 when it is built, and --gpus all when it runs.
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE CITATION.cff CHANGELOG.md ./
COPY sigmapca_cli sigmapca_cli
COPY conf conf
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
ARG TORCH=cpu
COPY constraints.txt /tmp/constraints.txt
# torch first, from the index without CUDA: PyPI's build for Linux brings gigabytes of CUDA libraries.
RUN pip install --no-cache-dir --constraint /tmp/constraints.txt \
        --index-url "https://download.pytorch.org/whl/${TORCH}" torch
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --constraint /tmp/constraints.txt \
        "$(echo /wheels/*.whl)[parquet,safetensors,picard]" \
    && useradd --uid 1000 --create-home sigmapca \
    && install -d -o sigmapca /work
USER 1000
WORKDIR /work
ENTRYPOINT ["sigmapca"]
CMD ["--help"]
