# Partita in a container: docker build --tag partita . && docker run --publish 8000:8000 partita
# docs/install.md has more.
ARG PYTHON=3.11-slim-bookworm

FROM python:${PYTHON} AS build
RUN apt-get update && \
    apt-get install --yes --no-install-recommends gcc libc6-dev && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY requirements.txt requirements-compile.txt ./
RUN python -m venv /build && \
    /build/bin/pip install --no-cache-dir -r requirements.txt -r requirements-compile.txt
COPY pyproject.toml README.md LICENSE ./
COPY scripts scripts
COPY src src
RUN PARTITA_WHEEL=compiled /build/bin/python -m hatchling build --target wheel
RUN python -m venv --without-pip /opt/partita && \
    /build/bin/pip --python /opt/partita/bin/python install --no-cache-dir \
        --constraint requirements.txt "$(echo dist/*.whl)[workflows,monitor]"

FROM python:${PYTHON}
RUN useradd --system --uid 10001 --no-create-home --home-dir /data partita && \
    install --directory --owner partita --group partita --mode 0700 /data
COPY --from=build /opt/partita /opt/partita
ENV PATH=/opt/partita/bin:$PATH
# A number, so that Kubernetes can see that it is not root.
USER 10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=2)"]
ENTRYPOINT ["partita"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000", "--data", "/data"]
