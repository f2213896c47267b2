# DPSyn in a container that runs as a plain user and needs to write nowhere but into the folders that it is given:
#
#   docker build -t dpsyn .
#   docker run --rm --read-only --tmpfs /tmp --network none --user "$(id -u):$(id -g)" \
#     -v "$PWD:/work" -v dpsyn-state:/state dpsyn synthesize people.csv -s schema.yaml --epsilon 1 --ledger ledger.db -o release/
#
# /state remembers the last entry of every ledger that was seen; keep it, or a ledger that was put back is not noticed.
FROM python:3.11-slim-bookworm AS build
COPY . /source
RUN python -m venv /opt/dpsyn \
 && /opt/dpsyn/bin/pip install --no-cache-dir --constraint /source/constraints.txt '/source[report,sign,office,duckdb]' \
 && /opt/dpsyn/bin/python -m compileall -q /opt/dpsyn/lib

FROM python:3.11-slim-bookworm
RUN useradd --uid 10001 --no-create-home dpsyn && install -d -o dpsyn -m 1777 /state /work
COPY --from=build /opt/dpsyn /opt/dpsyn
ENV PATH=/opt/dpsyn/bin:$PATH DPSYN_STATE_DIR=/state NUMBA_CACHE_DIR=/tmp/numba PYTHONDONTWRITEBYTECODE=1
USER dpsyn
WORKDIR /work
ENTRYPOINT ["dpsyn"]
CMD ["--help"]
