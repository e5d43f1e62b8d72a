# Partita in a container: docker build --tag partita . && docs/how-to/install.md says how to run it.
# The digest is that of the tag; to take a newer one: docker buildx imagetools inspect python:<tag>
ARG PYTHON=3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

FROM python:${PYTHON} AS build
RUN apt-get update && \
    apt-get install --yes --no-install-recommends gcc libc6-dev && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY requirements.txt requirements-compile.txt ./
RUN python -m venv /build && \
    /build/bin/pip install --no-cache-dir --require-hashes \
        -r requirements.txt -r requirements-compile.txt
COPY LICENSE ./
COPY scripts scripts
COPY packages packages
RUN for package in partita partita-services; do \
        (cd packages/$package && PARTITA_WHEEL=compiled \
            /build/bin/python -m hatchling build --target wheel --directory /source/dist) || exit; \
    done
RUN python -m venv --without-pip /opt/partita && \
    /build/bin/pip --python /opt/partita/bin/python install --no-cache-dir --require-hashes \
        -r requirements.txt && \
    /build/bin/pip --python /opt/partita/bin/python install --no-deps dist/*.whl && \
    /build/bin/pip --python /opt/partita/bin/python check

FROM python:${PYTHON}
RUN useradd --system --uid 10001 --no-create-home --home-dir /data partita && \
    install --directory --owner partita --group partita --mode 0700 /data
COPY --from=build /opt/partita /opt/partita
# As variables, so that arguments add to them. Others reach what listens on every address: `serve`
# starts with --auth or --no-auth only.
ENV PATH=/opt/partita/bin:$PATH \
    PARTITA_SERVE_HOST=0.0.0.0 \
    PARTITA_SERVE_PORT=8000 \
    PARTITA_SERVE_DATA=/data
# A number, so that Kubernetes can see that it is not root.
USER 10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=2)"]
ENTRYPOINT ["partita"]
CMD ["serve"]
