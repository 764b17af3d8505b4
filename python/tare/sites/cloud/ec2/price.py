"""Hourly cost of machines, from AWS's own catalogue (Price List Query API) or the latest spot prices.

The catalogue is available in a few regions, for all regions (https://docs.aws.amazon.com/awsaccountbilling, Price
Lists).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tare.sites.cloud import Cost
from tare.sites.cloud.plan import MachinePlan

CATALOGUE_REGION = "us-east-1"
_LINUX = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}


def cost_of(plan: MachinePlan, zone: str | None, ec2: Any, catalogue: Any) -> Cost:
    """Cost of all machines, without disks and traffic. `ec2`, `catalogue`: clients of boto3."""
    wanted = Counter({plan.types.sut: 0})
    wanted[plan.types.sut] += plan.sites * plan.nodes
    wanted[plan.types.client] += plan.sites
    total = 0.0
    for machine_type, number in wanted.items():
        try:
            price = _spot(ec2, machine_type, zone) if plan.spot else _listed(catalogue, machine_type, plan.region)
        except (ClientError, BotoCoreError) as error:
            return Cost(None, " ".join(str(error).split()))
        if price is None:
            return Cost(None, f"the catalogue has no price of {machine_type} in {plan.region}")
        total += number * price
    return Cost(total)


def _listed(catalogue: Any, machine_type: str, region: str) -> float | None:
    wanted = {**_LINUX, "instanceType": machine_type, "regionCode": region}
    filters = [{"Type": "TERM_MATCH", "Field": key, "Value": value} for key, value in wanted.items()]
    answer = catalogue.get_products(ServiceCode="AmazonEC2", Filters=filters, MaxResults=10)
    prices = [
        price for product in answer["PriceList"] if (price := on_demand_price(json.loads(product))) is not None
    ]
    return prices[0] if prices else None


def on_demand_price(product: Mapping[str, Any]) -> float | None:
    """US dollars per hour of a product of the catalogue; `None` if it is not sold by the hour on demand."""
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term.get("priceDimensions", {}).values():
            price = float(dimension.get("pricePerUnit", {}).get("USD", 0))
            if dimension.get("unit") == "Hrs" and price > 0:
                return price
    return None


def _spot(ec2: Any, machine_type: str, zone: str | None) -> float | None:
    where = {} if zone is None else {"AvailabilityZone": zone}
    answer = ec2.describe_spot_price_history(
        InstanceTypes=[machine_type], ProductDescriptions=["Linux/UNIX"], StartTime=datetime.now(UTC), **where
    )
    prices = [float(each["SpotPrice"]) for each in answer["SpotPriceHistory"]]
    return max(prices) if prices else None
