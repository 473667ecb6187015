"""An experiment in one file for reviewers: made by `bundle`, checked and run again by `verifying`."""
