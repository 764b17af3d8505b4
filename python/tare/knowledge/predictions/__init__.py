"""What an arm would cost by the unit costs of a machine, and how good such predictions were."""
