# Quire as a server. To build and run it, with a library in the volume `quire`:
#
#   docker build -t quire .
#   docker run -d --name quire --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
#       -v quire:/data -p 127.0.0.1:8900:8900 quire
#   docker exec quire quire keys make ops --can admin
#
# Only /data is written, and /tmp while it runs.

# The version of Python that the checks run with.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS build
WORKDIR /checkout
RUN python -m venv /opt/quire
COPY constraints.txt pyproject.toml PACKAGE.md LICENSE NOTICE ./
COPY src ./src
COPY man ./man
RUN /opt/quire/bin/python -m pip install --no-cache-dir --disable-pip-version-check --constraint constraints.txt ".[serve,postgres,documents]"

FROM python:${PYTHON}-slim
LABEL org.opencontainers.image.title="Quire" \
      org.opencontainers.image.description="The document memory of AI agents and of the people who work with them" \
      org.opencontainers.image.licenses="MIT"
# `quire add` of a repository runs git.
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*
# The number is fixed, so that files in a volume keep their owner when the image is built again.
RUN groupadd --gid 10001 quire \
    && useradd --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin quire \
    && install --directory --owner=10001 --group=10001 --mode=0700 /data
COPY --from=build /opt/quire /opt/quire
ENV PATH=/opt/quire/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/data \
    XDG_CONFIG_HOME=/data/config \
    XDG_DATA_HOME=/data/share \
    XDG_CACHE_HOME=/data/cache \
    QUIRE_LIBRARY=/data/library.db
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8900
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8900/health', timeout=4)"]
CMD ["quire", "serve", "--host", "0.0.0.0", "--access-log", "-"]
