# Two stages: the first has the compiler, the second only what runs.
FROM node:22-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json vite.config.ts openapi.yaml ./
COPY src ./src
COPY routes ./routes
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM node:22-bookworm-slim
LABEL org.opencontainers.image.title="omnid" \
      org.opencontainers.image.description="A server for AI agents" \
      org.opencontainers.image.licenses="MIT"
# What an agent's commands most often ask for; exec_command runs in this image.
RUN apt-get update \
 && apt-get install -y --no-install-recommends bash ca-certificates curl git procps ripgrep \
 && rm -rf /var/lib/apt/lists/* \
 && mkdir -p /data && chown node:node /data && chmod 700 /data
WORKDIR /app
COPY --from=build /app/package.json /app/openapi.yaml ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8420 \
    OMNID_DATA_DIR=/data
USER node
VOLUME /data
EXPOSE 8420
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# node is PID 1 and handles SIGTERM itself: it drains, records and exits 0. A bind beyond loopback asks for OMNID_TOKENS.
CMD ["node", "dist/src/cli.js"]
