"""Serves the titles of assets from the catalogue, which the dashboard shows instead of numbers."""

from __future__ import annotations

from typing import Any

from page_hit_counter.pagehits_settings import PageHitSettings
from page_hit_counter.service.authorization import AccessControl
from partita.client import Client, ClientError
from partita.server.http.web.web_service import (
    WebRequest,
    WebResponse,
    WebService,
    json_response,
    problem,
)

ASSETS_MAX = 100
"""The most keys that BatchGetItem takes."""
CACHED_MAX = 10_000


class Titles:
    def __init__(self, client: Client, settings: PageHitSettings) -> None:
        self._client = client
        self._table = settings.assets_table
        self._cached: dict[str, str] = {}

    def add_routes(self, web: WebService, access: AccessControl) -> None:
        web.add("GET", "/titles", access.internal(self.get_titles))

    async def get_titles(self, request: WebRequest) -> WebResponse:
        """Answers `?asset=1&asset=2` with the titles that the catalogue has."""
        assets = list(dict.fromkeys(value for name, value in request.query if name == "asset"))
        if len(assets) > ASSETS_MAX or not all(map(_is_number, assets)):
            return problem(400, f"asset takes a number, up to {ASSETS_MAX} times.")
        try:
            await self._read([asset for asset in assets if asset not in self._cached])
        except ClientError as error:
            return problem(503, f"The titles cannot be read at the moment: {error}")
        titles = {asset: self._cached[asset] for asset in assets if self._cached.get(asset)}
        return json_response({"titles": titles})

    async def _read(self, assets: list[str]) -> None:
        if len(self._cached) > CACHED_MAX:
            self._cached.clear()
        keys = [{"assetId": {"N": asset}} for asset in assets]
        while keys:
            keys_and_names: dict[str, Any] = {
                "Keys": keys,
                "ProjectionExpression": "assetId, title",
            }
            request = {"RequestItems": {self._table: keys_and_names}}
            answer = await self._client.call("dynamodb", "BatchGetItem", request)
            for item in answer["Responses"].get(self._table, []):
                title = item.get("title", {}).get("S", "")
                if title:
                    self._cached[item["assetId"]["N"]] = title
            keys = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < len(text) <= 19 and text[0] != "0"
