"""The AWS side: one CDK stack that puts the container behind a SageMaker endpoint."""
